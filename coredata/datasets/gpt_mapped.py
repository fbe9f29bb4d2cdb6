"""Batches straight from mapped files: from sample numbers to fields in one compiled call."""

from collections.abc import Sequence

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Shaped
from coredata.datasets.batch_memory import allocate_layout
from coredata.datasets.gpt_batch import add_boundaries, batch_layout, counted, mark_ends_in
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.gpt_fields import fill
from coredata.datasets.protocol import Batch
from coredata.datasets.special_ids import SpecialIds
from coredata.formats import IndexedDataset
from coredata.indices import IndexedOrder, find_spans


@kernel
def read_samples(
    samples,
    shuffle_index,
    sample_index,
    document_index,
    sequence_lengths,
    sequence_pointers,
    memory,
    extra,
    pad,
    counted,
    tokens,
    labels,
    loss_mask,
    position_ids,
):
    """Find the tokens of `samples` and turn them into fields where they lie.

    Everything is checked before it is used. `sequence_pointers` count bytes, `memory` is the
    whole file. Returns row splits (B + 1), then three parts of equal size, of which the first
    begins with where in `memory` each span lies and the third with its length: one array, because
    each costs time to hand over. It is empty where something is wrong; then nothing has been
    written, and whoever reads the samples in steps finds out what it is.
    """
    size = np.int64(tokens.shape[1])
    itemsize = np.int64(memory.itemsize)
    error, _, count, table = find_spans(
        samples,
        shuffle_index,
        sample_index,
        document_index,
        sequence_lengths,
        sequence_pointers,
        extra,
        size,
    )
    nothing = table[:0]
    if error != 0:
        return nothing
    rows = samples.size + 1
    room = (table.size - rows) // 3
    starts = table[rows : rows + room]
    offsets = table[rows + room : rows + 2 * room]
    lengths = table[rows + 2 * room :]
    for span in range(count):
        sequence = starts[span]
        if sequence >= sequence_pointers.size:
            return nothing
        pointer = sequence_pointers[sequence]
        bytes_before = offsets[span] * itemsize
        available = memory.size * itemsize - pointer
        if pointer < 0 or pointer % itemsize != 0:
            return nothing
        if bytes_before + lengths[span] * itemsize > available:
            return nothing
        starts[span] = (pointer + bytes_before) // itemsize
    fill(
        memory,
        starts,
        lengths,
        table[:rows],
        pad,
        counted,
        tokens,
        labels,
        loss_mask,
        position_ids,
    )
    return table


class MappedReader:
    """Reads batches of one dataset whose tokens lie in a mapped file.

    What does not change from batch to batch is looked up once: next to the compiled code, the
    rest would be a third of the time.

    Args:
        source: where tokens come from.
        order: which tokens make sample k.
        config: of the dataset; without a dense attention mask.
        ids: of its tokenizer.
    """

    def __init__(
        self, source: IndexedDataset, order: IndexedOrder, config: GPTDatasetConfig, ids: SpecialIds
    ) -> None:
        self._source = source
        self._order = order
        self._config = config
        self._ids = ids
        self._dtype = config.output_dtype
        self._numbers = (int(config.add_extra_token_to_sequence), ids.pad, counted(config))
        self._finished = counted(config) and not (config.eod_mask_loss or config.segment_ids)
        self._layout: tuple[int, np.dtype] = (0, batch_layout(0, config))

    def read(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> Batch | None:
        """All fields of samples.

        None where that cannot be: files that are not mapped, batch padding, no samples, and
        anything that is wrong, which whoever then reads in steps finds out.
        """
        samples = np.asarray(indices)
        if samples.dtype != np.int64 or samples.ndim != 1 or not samples.flags.carray:
            return None
        mapped = self._source.mapped_tokens(self._dtype)
        rows, layout = self._layout
        if rows != samples.size:
            rows, layout = samples.size, batch_layout(samples.size, self._config)
            self._layout = (rows, layout)
        if mapped is None or rows == 0:
            return None
        batch = allocate_layout(layout)
        table = read_samples(
            samples,
            *self._order.arrays,
            mapped[2],
            mapped[0],
            *self._numbers,
            batch["tokens"],
            batch["labels"],
            batch["loss_mask"],
            batch["position_ids"],
        )
        if table.size == 0:
            return None
        if not self._finished:
            self._finish(batch, mapped[0], table)
        return batch

    def _finish(self, batch: Batch, memory: np.ndarray, table: np.ndarray) -> None:
        """Fields that follow from ends of documents, with the table of `read_samples`."""
        rows = len(batch["tokens"]) + 1
        room = (len(table) - rows) // 3
        row_splits = table[:rows]
        count = row_splits[-1]
        starts = table[rows : rows + count]
        lengths = table[rows + 2 * room : rows + 2 * room + count]
        before = np.zeros(count + 1, np.int64)
        np.cumsum(lengths, out=before[1:])
        row_lengths = np.diff(before[row_splits])
        mark_ends_in(batch, memory, starts, lengths, row_splits, self._config, self._ids)
        add_boundaries(batch, row_splits, lengths, row_lengths, self._config)
