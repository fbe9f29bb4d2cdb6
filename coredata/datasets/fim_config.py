"""Settings of GPT samples with fill-in-the-middle."""

from collections.abc import Mapping
from dataclasses import dataclass

from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.fim import DEFAULT_TOKENS, FIMOptions, FIMTokenizer, FIMTokens

RANDOMNESS = ("sample", "stream")
ENCODERS = ("auto", "tokenizers")


@dataclass(frozen=True)
class GPTFIMDatasetConfig(GPTDatasetConfig):
    """Settings of `GPTFIMDataset`: those of GPT samples, and how pieces of them are permuted.

    Fields carry the reference's names, `fim_truncate_or_pad`, `randomness` and
    `fim_encoder` are not in it.
    Defaults are those of its command line.

    Raises:
        ValueError: a field out of range, or a tokenizer that cannot decode; the text names it and
            a value that would work.
    """

    fim_rate: int | float = 0.5
    """Probability that a piece of a sample is permuted; 0 is legal and permutes nothing."""

    fim_spm_rate: int | float = 0.5
    """Probability that a permuted piece is in the order suffix, prefix, middle (SPM) instead of
    prefix, suffix, middle (PSM)."""

    fim_extra_tokens: Mapping[str, str] | None = None
    """Spellings of the special tokens, with the keys prefix, middle, suffix, pad and eod. None
    for `<fim_prefix>`, `<fim_middle>`, `<fim_suffix>`, `<fim_pad>` and `<|endoftext|>`."""

    fim_split_sample: str | None = None
    """A token that ends a fragment (a file, say) of a document; fragments are permuted one by one.
    Needs `fim_fragment_rate`."""

    fim_fragment_rate: int | float | None = None
    """Probability that a fragment is permuted, in a document that is."""

    fim_no_prefix: str | None = None
    """Pieces whose text starts with this are left as they are."""

    fim_truncate_or_pad: bool = False
    """Whether every piece keeps its length, so that no document moves; else only samples do."""

    randomness: str = "sample"
    """Where random draws come from. "sample": from seed, dataset and sample number, so that a
    sample is the same in any process, order and restart. "stream": from one generator in the order
    samples are read, as in the reference; results depend on that order, on workers and restarts."""

    fim_encoder: str = "auto"
    """"auto" to tokenise with the gigatoken package where it is installed and gives the tokenizer's
    ids for a sample; "tokenizers" to do without. The samples are the same."""

    def __post_init__(self) -> None:
        """Check all fields."""
        super().__post_init__()
        if self.randomness not in RANDOMNESS:
            raise ValueError(f'randomness: got {self.randomness!r}, need "sample" or "stream"')
        if self.fim_encoder not in ENCODERS:
            raise ValueError(f'fim_encoder: got {self.fim_encoder!r}, need "auto" or "tokenizers"')
        if not isinstance(self.tokenizer, FIMTokenizer):
            raise ValueError(
                "tokenizer: infilling decodes and encodes text, but "
                f"{type(self.tokenizer).__name__} lacks one of encode_batch, decode and token_id. "
                "Use a tokenizer of coredata.text, such as TokenizerJson"
            )
        self.fim_options()

    def fim_options(self) -> FIMOptions:
        """The settings of the permutation.

        Raises:
            ValueError: one that is out of range; see `FIMOptions`.
        """
        names = self.fim_extra_tokens
        return FIMOptions(
            fim_rate=self.fim_rate,
            fim_spm_rate=self.fim_spm_rate,
            fim_extra_tokens=DEFAULT_TOKENS if names is None else FIMTokens.of(names),
            fim_split_sample=self.fim_split_sample,
            fim_fragment_rate=self.fim_fragment_rate,
            fim_no_prefix=self.fim_no_prefix,
            truncate_or_pad=self.fim_truncate_or_pad,
        )
