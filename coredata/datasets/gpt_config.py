"""What a GPT dataset is built from, beyond the settings that all datasets share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from coredata.datasets.config import BlendedMegatronDatasetConfig, check_whole_number
from coredata.datasets.special_ids import SpecialIds, read_attribute, special_ids
from coredata.formats import DType, best_dtype
from coredata.storage import with_read_options

OUTPUT_DTYPES = ("int64", "int32")


@dataclass(frozen=True)
class GPTDatasetConfig(BlendedMegatronDatasetConfig):
    """Settings of `GPTDataset`. Fields carry the reference's names.

    Defaults are the reference's, except that no dense attention mask is made unless asked for,
    and that the three reset and masking switches, which it wants set, are off.

    Raises:
        ValueError: a field out of range; the text names it and a value that would work.
    """

    reset_position_ids: bool = False
    """Count positions from 0 again after each end-of-document token."""

    reset_attention_mask: bool = False
    """In a dense attention mask, hide everything up to an end-of-document token from what comes
    after it."""

    eod_mask_loss: bool = False
    """No loss where the input token is end-of-document."""

    create_attention_mask: bool = False
    """Make a dense mask, bool (1, S, S). It costs S² bytes a sample; attention kernels seldom
    want it. On in the reference. None is made with `inter_document_masking`."""

    drop_last_partial_validation_sequence: bool = True
    """Leave out the last validation sample if it is short; False pads it. The number of samples
    is then exact; the reference computes it in 32-bit floats and is off past 2²⁴ tokens."""

    add_extra_token_to_sequence: bool = True
    """Read S + 1 tokens, so that the last position has a label. False rolls the S tokens, and the
    last label is padding."""

    object_storage_cache_path: str | None = None
    """A local directory for copies of `.idx` files that are behind URLs, shared by the processes
    of a host: `ReadOptions.copies` by the reference's name."""

    data_parallel_size: int = 1
    """For packed conversations; GPT samples do not depend on it."""

    sequence_parallel_size: int = 0
    """For packed conversations; GPT samples do not depend on it."""

    hybrid_context_parallel: bool = False
    """For packed conversations; GPT samples do not depend on it."""

    sequences_per_dataset: Mapping[str, Sequence[int]] | None = None
    """Prefix -> (sequences, entries of the document list), so that headers need not be read.
    Needs a tokenizer with a vocabulary size, from which the dtype of the tokens follows."""

    token_dtype_code: int | None = field(init=False, default=None)
    """Code of the token dtype that the vocabulary size implies: 8 (uint16) or 4 (int32); None
    without a vocabulary size. Computed, by the rule that writers follow."""

    context_parallel_size: int | None = None
    """For packed conversations; GPT samples do not depend on it."""

    inter_document_masking: bool = False
    """Add `cu_seqlens` and `max_seqlen`, and count positions from 0 in each document. Documents
    are those that were read, whether they have an end token or not."""

    segment_ids: bool = False
    """Add `segment_ids`: 1, 2, … for the documents of a sample, 0 for padding. Not in the
    reference."""

    separate_final_epoch_threshold: int | float = 0.80
    """The last epoch is shuffled by itself when less than this share of it is used. Not an option
    in the reference, which has this value."""

    output_dtype: str = "int64"
    """Of tokens, labels and position ids: "int64" as in the reference, or "int32"."""

    @cached_property
    def special_ids(self) -> SpecialIds:
        """End and pad ids of the tokenizer; read once for all datasets that are built from this.

        Warns:
            UserWarning: the pad id is also another special id (see `special_ids`).
        """
        return special_ids(self.tokenizer, bool(self.allow_ambiguous_pad_tokens))

    def __post_init__(self) -> None:
        """Check all fields and compute `token_dtype_code`."""
        super().__post_init__()
        if self.tokenizer is None:
            raise ValueError(
                "tokenizer: got None, but a GPT dataset needs the end and pad ids. For numbers "
                "without a tokenizer give coredata.text.NullTokenizer(vocab_size)"
            )
        check_whole_number("data_parallel_size", self.data_parallel_size, 1)
        check_whole_number("sequence_parallel_size", self.sequence_parallel_size, 0)
        if self.context_parallel_size is not None:
            check_whole_number("context_parallel_size", self.context_parallel_size, 1)
        if not 0 <= self.separate_final_epoch_threshold <= 1:
            raise ValueError(
                "separate_final_epoch_threshold: got "
                f"{self.separate_final_epoch_threshold!r}, need a share from 0 to 1, such as 0.80"
            )
        if self.output_dtype not in OUTPUT_DTYPES:
            raise ValueError(f'output_dtype: got {self.output_dtype!r}, need "int64" or "int32"')
        if self.sequence_length >= np.iinfo(np.int32).max:
            raise ValueError(
                f"sequence_length: got {self.sequence_length}, need less than 2147483647, because "
                "document boundaries are 32-bit"
            )
        if self.object_storage_cache_path is not None:
            copies = with_read_options(self.storage_options, copies=self.object_storage_cache_path)
            object.__setattr__(self, "storage_options", copies)
        self._check_eod()
        self._compute_token_dtype_code()

    def _check_eod(self) -> None:
        for name in ("reset_position_ids", "reset_attention_mask", "eod_mask_loss"):
            if getattr(self, name) and read_attribute(self.tokenizer, "eod") is None:
                raise ValueError(
                    f"{name}: it is on, but the tokenizer {type(self.tokenizer).__name__} has no "
                    f"end-of-document id (eod). Give a tokenizer with one, or {name}=False"
                )

    def _compute_token_dtype_code(self) -> None:
        vocab_size = read_attribute(self.tokenizer, "vocab_size")
        if vocab_size is not None:
            code = DType.code_from_dtype(best_dtype(int(vocab_size)))
            object.__setattr__(self, "token_dtype_code", code)
        elif self.sequences_per_dataset is not None:
            raise ValueError(
                "sequences_per_dataset: it is given, but the tokenizer "
                f"{type(self.tokenizer).__name__} has no vocab_size, from which the dtype of the "
                "tokens follows. Give a tokenizer with one, or sequences_per_dataset=None"
            )
