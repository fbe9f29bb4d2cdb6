"""coredata's samplers as torch's `batch_sampler`, with a state."""

from collections.abc import Iterator, Mapping
from typing import Any, final

import torch

from coredata.datasets.protocol import Dataset
from coredata.loading import full_fingerprint, make_state, read_place, read_state
from coredata.loading.prefetch import Step, steps
from coredata.sampling import BatchSampler


@final
class TorchBatchSampler(torch.utils.data.Sampler[list[int]]):
    """The batches of any sampler of `coredata.sampling`, as lists of sample numbers.

    It is a value: every iteration starts where `sampler` does. A cyclic sampler goes on epoch
    after epoch. Iterators have `state_dict` and `load_state_dict`, by which torchdata's
    `StatefulDataLoader` saves and resumes them without walking there.

    Args:
        sampler: which samples this rank takes.
        dataset: what they are samples of, so that a state of another dataset is refused.
    """

    def __init__(self, sampler: BatchSampler, dataset: Dataset | None = None) -> None:
        self.sampler = sampler
        self.dataset = dataset

    def __len__(self) -> int:
        """Number of batches from where the sampler starts to the end (of the epoch, if cyclic)."""
        return len(self.sampler)

    def __iter__(self) -> "BatchNumbers":
        """The batches, from where the sampler starts."""
        return BatchNumbers(self.sampler, full_fingerprint(self.dataset, self.sampler))


@final
class BatchNumbers(Iterator[list[int]]):
    """One way through the batches of a sampler; its position can be saved and loaded."""

    def __init__(self, sampler: BatchSampler, fingerprint: Mapping[str, Any]) -> None:
        self._sampler = sampler
        self._fingerprint = fingerprint
        self._consumed = int(sampler.consumed_samples)
        self._stands_at: int | None = None
        self._steps: Iterator[Step] = steps(sampler)

    def __next__(self) -> list[int]:
        """The sample numbers of the next batch."""
        step = next(self._steps)
        self._consumed, self._stands_at = step.consumed_samples, None
        return step.indices.tolist()

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that was given, as of every loader of coredata."""
        return make_state(self._consumed, self._fingerprint, self._stands_at)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a position, of any loader of coredata over this dataset.

        Raises:
            ValueError: a malformed state, or a position where no batch of this sampler begins.
            StateMismatchError: it was saved over another dataset or order.
        """
        consumed, place = read_state(state_dict, self._fingerprint), read_place(state_dict)
        self._steps = steps(self._sampler.resume(consumed))
        self._consumed, self._stands_at = consumed, place
