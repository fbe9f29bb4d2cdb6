"""Samples of different lengths in one batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from coredata._typing import Shaped
from coredata.datasets.protocol import PADDING, Batch, Dataset, LooksAhead, Sample


def stack_samples(samples: Sequence[Mapping[str, Any]]) -> Batch:
    """Samples as one batch; a field whose lengths differ is padded with zeros to the longest.

    A zero in `loss_mask` is no loss, so padding does not count. How much of a row is real stands
    in the fields of the samples, such as `original_seq_len`.

    Raises:
        ValueError: no samples; samples of different fields; shapes that differ in more than the
            first axis.
    """
    if not samples:
        raise ValueError("there are no samples to stack; leave empty batches out")
    names = samples[0].keys()
    for number, sample in enumerate(samples):
        if sample.keys() != names:
            raise ValueError(
                f"sample {number} of the batch has the fields {sorted(sample)}, sample 0 has "
                f"{sorted(names)}; samples of one batch need the same fields"
            )
    return {name: _stack(name, [np.asarray(sample[name]) for sample in samples]) for name in names}


def _stack(name: str, arrays: list[np.ndarray]) -> np.ndarray:
    shapes = {array.shape for array in arrays}
    if len(shapes) == 1:
        return np.stack(arrays)
    if len({shape[1:] for shape in shapes}) != 1 or () in shapes:
        raise ValueError(
            f"field {name} has the shapes {sorted(shapes)}; samples of one batch may differ in the "
            "first axis alone"
        )
    longest = max(len(array) for array in arrays)
    out = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), np.result_type(*arrays))
    for row, array in zip(out, arrays, strict=True):
        row[: len(array)] = array
    return out


@final
@dataclass(frozen=True)
class PaddedToLongest:
    """A dataset whose samples have different lengths, with batches padded to their longest."""

    source: Dataset

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.source)

    def __getitem__(self, index: int | None) -> Sample:
        """One sample, of its own length."""
        return self.source[index]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples, each of its own length."""
        return self.source.__getitems__(indices)

    def prefetch(self, indices: Shaped[np.ndarray, " samples"]) -> None:
        """Tell the source, if that is of use to it; see `LooksAhead`."""
        if isinstance(self.source, LooksAhead):
            self.source.prefetch(indices)

    def get_batch(self, indices: Shaped[np.ndarray, " batch"]) -> Batch:
        """Samples stacked, padded with zeros to the longest; `PADDING` asks for batch padding.

        Of no samples, as a rank may get with `drop_last=False`, every field has no rows, and the
        width that batch padding has.
        """
        numbers = indices.tolist()
        if not numbers:
            one = stack_samples([self.source[None]])
            return {name: array[:0] for name, array in one.items()}
        if PADDING not in numbers:
            return stack_samples(self.source.__getitems__(numbers))
        return stack_samples([self.source[None if n == PADDING else n] for n in numbers])

    def fingerprint(self) -> Mapping[str, Any]:
        """That of the source: padding changes no sample."""
        return self.source.fingerprint()
