"""A dataset whose samples are rows of fixed length, packed from the samples of another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from coredata._typing import Int64, Shaped
from coredata.datasets.pack_windows import PACKED_FIELDS, check_packable
from coredata.datasets.protocol import PADDING, Batch, Dataset, LooksAhead, Sample
from coredata.varlen import (
    PackPlan,
    Segments,
    concatenate,
    cu_seqlens,
    padding_mask,
    places,
    position_ids,
    segment_ids,
)
from coredata_jax.packed_plans import Plans

ROWS = 2**32
"""Row r of window w goes by the number w · ROWS + r: how many rows earlier windows have need not
be known."""

_TYPES = dict(zip(PACKED_FIELDS, (np.int64, np.int64, np.float32), strict=True))


@final
@dataclass(frozen=True, eq=False)
class PackedRows:
    """Rows by number (see `ROWS`), each a few samples, or parts of samples, end to end.

    Attributes:
        source: samples with `tokens`, `labels` and `loss_mask` of any length, such as those of
            `VarlenDataset` or `SFTDataset`.
        plans: which of them share a row.
        max_segments: the most segments of a row.
        whole: whether a segment must be all of its sample, unless a row cannot hold that.
    """

    source: Dataset
    plans: Plans
    max_segments: int
    whole: bool = False

    def __len__(self) -> int:
        """Number of rows. All windows are planned for it."""
        return sum(self.plans.facts(window).rows for window in range(len(self.plans)))

    def __getitem__(self, index: int | None) -> Sample:
        """One row; None gives an empty one."""
        batch = self.get_batch(np.array([PADDING if index is None else index]))
        return {name: array[0] for name, array in batch.items()}

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several rows."""
        return [self[index] for index in indices]

    def fingerprint(self) -> Mapping[str, Any]:
        """That of the source; how it is packed is the order's."""
        return self.source.fingerprint()

    def prefetch(self, indices: Shaped[np.ndarray, " samples"]) -> None:
        """Tell the source of the samples of these rows, if that is of use to it."""
        if isinstance(self.source, LooksAhead):
            self.source.prefetch(np.unique(self._rows(indices).segments.samples))

    def get_batch(self, indices: Shaped[np.ndarray, " batch"]) -> Batch:
        """Rows stacked; `PADDING` gives an empty one. Every shape is the same for every batch.

        Returns:
            (rows, sequence_length): `tokens`, `labels` (int64), `loss_mask` (float32);
            `segment_ids` (int32; 1, 2, 3, … in a row, 0 where nothing is) and `position_ids`
            (int32; from 0 in each segment). (rows, max_segments + 1), int32: `cu_seqlens`, the
            sums of the segments' lengths, and `cu_seqlens_padded`, where they lie, which differs
            where samples are padded to a multiple; both repeat the last one to the end.

        Raises:
            ValueError: a sample that is not as long as its length said, or without the fields that
                are packed.
        """
        plan = self._rows(indices)
        samples, numbers = np.unique(plan.segments.samples, return_inverse=True)
        read = self.source.__getitems__(samples.tolist())
        for sample in read[:1]:
            check_packable(sample)
        fields = {name: np.zeros(len(plan) * plan.limit, dtype) for name, dtype in _TYPES.items()}
        lengths = np.zeros(len(plan.segments), np.int64)
        starts = places(plan).tolist()
        segments = zip(plan.segments.offsets.tolist(), plan.segments.lengths.tolist(), strict=True)
        for segment, (offset, length) in enumerate(segments):
            sample = read[numbers[segment]]
            self._check(int(samples[numbers[segment]]), offset, length, len(sample["tokens"]))
            kept = min(max(_original(sample) - offset, 0), length)
            for name, flat in fields.items():
                start = starts[segment]
                flat[start : start + kept] = sample[name][offset : offset + kept]
            lengths[segment] = kept
        original = PackPlan(
            Segments(plan.segments.samples, plan.segments.offsets, lengths),
            plan.row_splits,
            plan.limit,
        )
        batch: Batch = {name: a.reshape(len(plan), plan.limit) for name, a in fields.items()}
        batch["segment_ids"], batch["position_ids"] = segment_ids(plan), position_ids(plan)
        batch["cu_seqlens"] = cu_seqlens(original, self.max_segments)
        batch["cu_seqlens_padded"] = cu_seqlens(plan, self.max_segments)
        if original.tokens != plan.tokens:
            for row, bounds in enumerate(batch["cu_seqlens"]):
                padding = padding_mask(bounds, batch["cu_seqlens_padded"][row])
                for name in ("segment_ids", "position_ids"):
                    batch[name][row, : len(padding)][padding] = 0
        return batch

    def _rows(self, indices: Int64[np.ndarray, " batch"]) -> PackPlan:
        """The rows of these numbers, in their order."""
        nothing = np.zeros(0, np.int64)
        limit = self.plans.windows.limit
        empty = PackPlan(Segments(nothing, nothing, nothing), np.zeros(2, np.int64), limit)
        rows = [
            empty
            if number == PADDING
            else self.plans.plan(number // ROWS).take(np.array([number % ROWS]))
            for number in indices.tolist()
        ]
        return concatenate(rows) if rows else empty.rows(0, 0)

    def _check(self, sample: int, offset: int, length: int, found: int) -> None:
        short = offset + length > found
        cut = self.whole and self.plans.windows.overflow in ("error", "drop") and length != found
        if short or cut:
            raise ValueError(
                f"sample {sample} has {found} tokens, but its length was given as "
                f"{offset + length}. Give lengths of the samples as they are now, padding included"
            )


def _original(sample: Mapping[str, Any]) -> int:
    """Tokens of a sample without padding at its end."""
    if "original_seq_len" in sample:
        return int(np.reshape(sample["original_seq_len"], -1)[0])
    return len(sample["tokens"])
