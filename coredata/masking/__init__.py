"""Masked language modelling: from sentences to the samples of BERT and T5. Pure arrays."""

from coredata.masking.attention import T5AttentionMasks, t5_attention_masks
from coredata.masking.bert import BertIds, BertMasking
from coredata.masking.sentences import Masking, SampleSentences
from coredata.masking.settings import MaskingSettings, size_cutoffs
from coredata.masking.t5 import T5Ids, T5Masking
from coredata.masking.words import WORDPIECE_MARK, WordTable

__all__ = [
    "WORDPIECE_MARK",
    "BertIds",
    "BertMasking",
    "Masking",
    "MaskingSettings",
    "SampleSentences",
    "T5AttentionMasks",
    "T5Ids",
    "T5Masking",
    "WordTable",
    "size_cutoffs",
    "t5_attention_masks",
]
