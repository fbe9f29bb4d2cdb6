"""T5 samples: a run of sentences without some spans, and these spans."""

from typing import final

from coredata.datasets.masked import MaskedWordPieceDataset
from coredata.datasets.masked_config import T5MaskedWordPieceDatasetConfig
from coredata.datasets.masked_ids import t5_ids
from coredata.datasets.protocol import Batch
from coredata.indices import SentenceSettings
from coredata.masking import SampleSentences, T5Masking, WordTable, t5_attention_masks

_SPECIAL_TOKENS = 2


@final
class T5MaskedWordPieceDataset(MaskedWordPieceDataset):
    """Samples for span corruption.

    Fields, int64, E the encoder's length and D the decoder's: `text_enc` (B, E), `text_dec`,
    `labels` (-1 where padded) and `loss_mask` (B, D), `truncated` (B), `enc_mask` (B, E) and
    `dec_mask` (B, D). The two masks are 1 where there is a token: as they are, segment ids for
    attention that takes these. `create_attention_mask` adds dense ones. What each field holds is
    said by `coredata.masking.T5Masking.fill`; arguments and errors by `MaskedWordPieceDataset`.
    """

    config: T5MaskedWordPieceDatasetConfig

    def _own_key_attributes(self) -> tuple[str, ...]:
        return ("sequence_length_decoder",)

    def _sentence_settings(self) -> SentenceSettings:
        return SentenceSettings(
            max_length=self.config.sequence_length - _SPECIAL_TOKENS,
            short_sequence_probability=self.config.short_sequence_probability,
            min_sentences=1,
            random_seed=self.config.random_seed,
        )

    def _reads_only_target(self) -> bool:
        return True

    def _build_masking(self, words: WordTable, pad: int) -> T5Masking:
        return T5Masking(
            encoder_length=self.config.sequence_length,
            decoder_length=self.config.sequence_length_decoder or 0,
            settings=self.config.masking_settings(),
            words=words,
            ids=t5_ids(self.config.tokenizer, pad),
        )

    def _make(self, samples: SampleSentences) -> Batch:
        batch = super()._make(samples)
        if self.config.create_attention_mask:
            masks = t5_attention_masks(batch["enc_mask"], batch["dec_mask"])
            batch["enc_attention_mask"] = masks.encoder
            batch["dec_attention_mask"] = masks.decoder
            batch["enc_dec_attention_mask"] = masks.encoder_decoder
        return batch
