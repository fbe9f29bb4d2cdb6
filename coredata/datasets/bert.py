"""BERT samples: two runs of sentences, or one, with masked tokens."""

from typing import final

from coredata.datasets.masked import MaskedWordPieceDataset
from coredata.datasets.masked_config import BERTMaskedWordPieceDatasetConfig
from coredata.datasets.masked_ids import bert_ids
from coredata.indices import SentenceSettings
from coredata.masking import BertMasking, WordTable

_SPECIAL_TOKENS = 3


@final
class BERTMaskedWordPieceDataset(MaskedWordPieceDataset):
    """Samples for masked language modelling and, with the head, next sentence prediction.

    Fields, int64 (B, S) unless said otherwise: `text`, `types`, `labels` (-1 where nothing is
    masked), `padding_mask`, `loss_mask`, and `is_random` and `truncated` (B). What each holds is
    said by `coredata.masking.BertMasking.fill`; arguments and errors by `MaskedWordPieceDataset`.
    """

    config: BERTMaskedWordPieceDatasetConfig

    def _own_key_attributes(self) -> tuple[str, ...]:
        return ("classification_head",)

    def _sentence_settings(self) -> SentenceSettings:
        return SentenceSettings(
            max_length=self.config.sequence_length - _SPECIAL_TOKENS,
            short_sequence_probability=self.config.short_sequence_probability,
            min_sentences=2 if self.config.classification_head else 1,
            random_seed=self.config.random_seed,
        )

    def _reads_only_target(self) -> bool:
        return False

    def _build_masking(self, words: WordTable, pad: int) -> BertMasking:
        return BertMasking(
            sequence_length=self.config.sequence_length,
            classification_head=self.config.classification_head,
            settings=self.config.masking_settings(),
            words=words,
            ids=bert_ids(self.config.tokenizer, pad),
        )
