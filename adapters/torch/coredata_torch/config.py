"""How a training run reads its data: sizes, ranks, kinds of loaders."""

from dataclasses import dataclass
from typing import SupportsIndex

from coredata.sampling import (
    BatchSampler,
    HybridCPMegatronPretrainingSampler,
    MegatronFullValidationSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
)
from coredata.sampling.checks import (
    check_global_batch,
    check_positive,
    check_rank,
    take_whole_numbers,
    whole_number,
)

DATALOADER_TYPES = ("single", "cyclic", "external")
FULL_VALIDATIONS = ("exact", "padded")


@dataclass(frozen=True)
class LoaderConfig:
    """What all loaders of a run have in common; fields are called as in Megatron-LM.

    Raises:
        ValueError: a field out of range, or a global batch that is not divisible.
        TypeError: a number that is no integer.
    """

    micro_batch_size: int
    """Samples in a batch of one rank."""

    data_parallel_rank: int = 0
    """This process's number among those that read different samples."""

    data_parallel_size: int = 1
    """How many there are."""

    dataloader_type: str = "single"
    """"single": samples in order, once. "cyclic": in random order, epoch after epoch. "external":
    datasets are loaders already, and are passed through."""

    data_sharding: bool = True
    """Cyclic only: each rank keeps to its own stretch of the data. With False, a run can go on with
    another number of ranks."""

    global_batch_size: int | None = None
    """Samples in a step of all ranks; checked to be divisible. hybrid_context_parallel needs it."""

    hybrid_context_parallel: bool = False
    """Single only: a batch is all that a rank takes of a global batch."""

    drop_last: bool = True
    """Leave out the last samples if they do not fill a step."""

    full_validation: str | None = None
    """Read the whole validation set at every evaluation: "exact", one sample at a time, some ranks
    perhaps a step less than others; "padded", micro batches, filled up with samples without loss so
    that ranks stay in step. None reads on where the last evaluation ended."""

    num_workers: int = 0
    """Processes that read for this rank; 0 reads in a thread."""

    start_method: str | None = None
    """How workers start: "fork", "spawn", "forkserver"; None is Python's own."""

    prefetch: int = 2
    """Batches read ahead (by each worker)."""

    pin_memory: bool = True
    """Batches in page-locked memory, where there is a GPU."""

    def __post_init__(self) -> None:
        numbers = ("micro_batch_size", "data_parallel_rank", "data_parallel_size")
        take_whole_numbers(self, *numbers, "num_workers", "prefetch")
        if self.global_batch_size is not None:
            take_whole_numbers(self, "global_batch_size")
        check_positive(micro_batch_size=self.micro_batch_size)
        check_rank(self.data_parallel_rank, self.data_parallel_size)
        if self.dataloader_type not in DATALOADER_TYPES:
            raise ValueError(
                f"dataloader_type: got {self.dataloader_type!r}, need one of "
                f"{', '.join(DATALOADER_TYPES)}"
            )
        if self.full_validation not in (None, *FULL_VALIDATIONS):
            raise ValueError(
                f"full_validation: got {self.full_validation!r}, need one of "
                f"{', '.join(FULL_VALIDATIONS)}, or None"
            )
        if self.global_batch_size is not None:
            check_global_batch(
                self.global_batch_size, self.micro_batch_size, self.data_parallel_size
            )
        if self.hybrid_context_parallel and (
            self.global_batch_size is None or self.dataloader_type != "single"
        ):
            raise ValueError(
                "hybrid_context_parallel: it needs a global_batch_size, and dataloader_type "
                f"'single'; got {self.global_batch_size} and {self.dataloader_type!r}"
            )

    def sampler(
        self, total_samples: int, consumed_samples: SupportsIndex = 0, *, validation: bool = False
    ) -> BatchSampler:
        """Which samples of a dataset of `total_samples` this rank takes.

        Raises:
            ValueError: a position where no batch begins; fewer samples than a cyclic step.
            TypeError: a position that is no integer.
        """
        consumed_samples = whole_number("consumed_samples", consumed_samples)
        rank, size = self.data_parallel_rank, self.data_parallel_size
        if validation and self.full_validation == "exact":
            return MegatronFullValidationSampler(total_samples, rank, size, consumed_samples)
        common = (total_samples, consumed_samples, self.micro_batch_size)
        if validation and self.full_validation == "padded":
            return PaddedPretrainingSampler(*common, rank, size)
        if self.dataloader_type == "cyclic":
            return MegatronPretrainingRandomSampler(*common, rank, size, self.data_sharding)
        if self.hybrid_context_parallel and self.global_batch_size is not None:
            return HybridCPMegatronPretrainingSampler(
                *common, self.global_batch_size, rank, size, self.drop_last
            )
        return MegatronPretrainingSampler(*common, rank, size, self.drop_last)
