"""One process of a tensor-parallel group reads; the others receive its batches."""

from collections.abc import Callable, Iterator
from typing import Any, final

import torch
import torch.distributed as dist

from coredata_torch.tensors import Tensors
from coredata_torch.wire import BATCH, END, FAILED, HEADER, Layout, pack_header, read_header


class ReaderFailedError(RuntimeError):
    """The process that reads for this group raised an exception; the text says which."""


@final
class BroadcastIterator(Iterator[Tensors]):
    """Batches that rank 0 of a group reads, on every rank of the group.

    A batch is one message with the fields' names, dtypes and shapes (64-bit integers, exact at any
    size), and one with the data of each dtype. The end of the data, and an exception while reading,
    reach every rank, so that none waits for ever.

    All ranks of the group must call `next` alike. The position is that of the reader: save and load
    the state of rank 0's own loader.
    """

    def __init__(
        self,
        batches: Iterator[Tensors] | None,
        group: Any = None,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        """Make the iterator of this process; nothing is sent yet.

        Args:
            batches: what rank 0 reads from; on other ranks None, or anything: it is not touched.
            group: the tensor-parallel group; None for all processes.
            device: where batches are wanted, and where messages travel: a GPU for an NCCL group.

        Raises:
            ValueError: rank 0 has nothing to read from.
        """
        self._group = group
        self._device = torch.device(device)
        self._source = 0 if group is None else dist.get_global_rank(group, 0)
        self._reads = dist.get_rank(group) == 0
        if self._reads and batches is None:
            raise ValueError(
                "batches is None on rank 0 of the group, which reads for all of it; give it a "
                "loader there, such as build_pretraining_data_loader makes"
            )
        self._batches = batches

    def __next__(self) -> Tensors:
        """The next batch, the same on all ranks.

        Raises:
            StopIteration: the reader is at its end.
            ReaderFailedError: on the ranks that receive, when reading failed. (The reader raises
                what it was.)
            ValueError: on the reader, a batch with too many fields for one message.
        """
        return self._send() if self._reads else self._receive()

    def _send(self) -> Tensors:
        with _EndHeard(self._broadcast):
            if self._batches is None:
                raise StopIteration
            batch = next(self._batches)
            layout = Layout.of(batch)
            header = pack_header(BATCH, layout.words())
            flat = {dtype: layout.flatten(batch, dtype) for dtype in layout.dtypes()}
        self._broadcast(header)
        return layout.unflatten({d: self._broadcast(buffer) for d, buffer in flat.items()})

    def _receive(self) -> Tensors:
        header = torch.empty(HEADER, dtype=torch.int64)
        kind, content = read_header(self._broadcast(header))
        if kind == END:
            raise StopIteration
        if isinstance(content, str):
            raise ReaderFailedError(f"rank 0 of the group failed while reading: {content}")
        layout = Layout.from_words(content)
        flat = {
            dtype: torch.empty(layout.bytes_of(dtype), dtype=torch.uint8, device=self._device)
            for dtype in layout.dtypes()
        }
        for buffer in flat.values():
            self._broadcast(buffer)
        return layout.unflatten(flat)

    def _broadcast(self, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.to(self._device)
        dist.broadcast(tensor, self._source, group=self._group)
        return tensor


class _EndHeard:
    """Tells the receivers when the reader is at its end, or fails, inside the `with`."""

    def __init__(self, send: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._send = send

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is None or not issubclass(kind, Exception):
            return  # Interrupted: this process ends, which the others notice.
        if issubclass(kind, StopIteration):
            self._send(pack_header(END, []))
        else:
            self._send(pack_header(FAILED, f"{kind.__name__}: {error}"))
