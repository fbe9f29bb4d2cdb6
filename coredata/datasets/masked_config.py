"""What BERT and T5 datasets are built from, beyond the settings that all datasets share."""

from dataclasses import dataclass, field

from coredata.datasets.config import BlendedMegatronDatasetConfig, check_whole_number
from coredata.datasets.masked_ids import bert_ids, check_full_words, t5_ids
from coredata.masking import MaskingSettings

MASKED_KEY_CONFIG_ATTRIBUTES = (
    "masking_probability",
    "short_sequence_probability",
    "masking_max_ngram",
    "masking_do_full_word",
    "masking_do_permutation",
    "masking_use_longer_ngrams",
    "masking_use_geometric_distribution",
)
"""Fields that the reference puts into the description of every masked dataset, in its order."""


@dataclass(frozen=True)
class MaskedWordPieceDatasetConfig(BlendedMegatronDatasetConfig):
    """Settings that BERT and T5 share. Fields carry the reference's names.

    The reference has no defaults; these are those of its BERT script.

    Raises:
        ValueError: a field out of range; a tokenizer without what samples need.
    """

    masking_probability: int | float = 0.15
    """Share of tokens that are masked."""

    short_sequence_probability: int | float = 0.1
    """How often a sample is made shorter than it could be. Its inverse is rounded."""

    masking_max_ngram: int = 3
    """Most words that are masked as one."""

    masking_do_full_word: bool = True
    """Mask all pieces of a word or none; needs a vocabulary that tells words apart."""

    masking_do_permutation: bool = False
    """Let as many tokens again change places."""

    masking_use_longer_ngrams: bool = False
    """Prefer long n-grams to short ones."""

    masking_use_geometric_distribution: bool = False
    """Draw the lengths of n-grams as SpanBERT does."""

    masking_word_start: str | None = None
    """None: WordPiece, a piece that starts with "##" continues a word. Else what pieces start with
    that begin a word: "▁" for SentencePiece, "Ġ" for byte-level BPE. Not in the reference."""

    def __post_init__(self) -> None:
        """Check all fields."""
        super().__post_init__()
        if self.tokenizer is None:
            raise ValueError(
                "tokenizer: got None, but masking needs its special ids and its vocabulary. Give "
                "for example coredata.load_tokenizer(model='tokenizer.json')"
            )
        check_whole_number("masking_max_ngram", self.masking_max_ngram, 1)
        if not 0 <= self.short_sequence_probability <= 1:
            raise ValueError(
                "short_sequence_probability: got "
                f"{self.short_sequence_probability!r}, need a probability, such as 0.1"
            )
        if self.masking_word_start == "":
            raise ValueError(
                'masking_word_start: got "", which every piece starts with. Give "▁" for '
                "SentencePiece, or None for WordPiece"
            )
        self.masking_settings()
        if self.masking_do_full_word:
            check_full_words(self.tokenizer, self.masking_word_start)

    def masking_settings(self) -> MaskingSettings:
        """How much is masked, and in what pieces.

        Raises:
            ValueError: a field out of range, or two that exclude each other.
        """
        return MaskingSettings(
            probability=float(self.masking_probability),
            max_ngram=self.masking_max_ngram,
            full_words=self.masking_do_full_word,
            permute=self.masking_do_permutation,
            longer_ngrams=self.masking_use_longer_ngrams,
            geometric=self.masking_use_geometric_distribution,
        )


@dataclass(frozen=True)
class BERTMaskedWordPieceDatasetConfig(MaskedWordPieceDatasetConfig):
    """Settings of `BERTMaskedWordPieceDataset`.

    Raises:
        ValueError: a field out of range, or a tokenizer without cls, sep or mask.
    """

    classification_head: bool = True
    """Samples are two halves, one time in two in the wrong order (next sentence prediction)."""

    def __post_init__(self) -> None:
        """Check all fields."""
        super().__post_init__()
        check_whole_number("sequence_length", self.sequence_length, 5)
        bert_ids(self.tokenizer, -1)


@dataclass(frozen=True)
class T5MaskedWordPieceDatasetConfig(MaskedWordPieceDatasetConfig):
    """Settings of `T5MaskedWordPieceDataset`.

    Defaults are those of the reference's T5 script where it has others than BERT's.

    Raises:
        ValueError: a field out of range, or a tokenizer without bos, eos or sentinels.
    """

    masking_max_ngram: int = 10
    """Most words that are masked as one."""

    masking_use_geometric_distribution: bool = True
    """Draw the lengths of n-grams as SpanBERT does."""

    sequence_length_encoder: int | None = field(init=False, default=None)
    """Another name of `sequence_length`. Computed."""

    sequence_length_decoder: int | None = None
    """Tokens of the decoder's input: 1 + 2 × the masked tokens are always enough."""

    create_attention_mask: bool = False
    """Add dense masks, bool, True where masked: `enc_attention_mask` (1, encoder, encoder),
    `dec_attention_mask` (1, decoder, decoder), causal, and `enc_dec_attention_mask` (1, decoder,
    encoder). They have a byte for every pair; see `coredata.masking.t5_attention_masks`. Not in
    the reference, whose trainer makes them."""

    def __post_init__(self) -> None:
        """Check all fields and compute `sequence_length_encoder`."""
        super().__post_init__()
        check_whole_number("sequence_length", self.sequence_length, 4)
        if self.sequence_length_decoder is None:
            most = self.masking_settings().most_masked(self.sequence_length - 2)
            raise ValueError(
                "sequence_length_decoder: got None, need the tokens of the decoder's input. With "
                f"these settings {1 + 2 * most} are always enough"
            )
        check_whole_number("sequence_length_decoder", self.sequence_length_decoder, 2)
        object.__setattr__(self, "sequence_length_encoder", self.sequence_length)
        t5_ids(self.tokenizer, -1)
