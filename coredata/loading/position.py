"""One position in a run, shared by `for`, `next` and `state_dict`: what all loaders have."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, SupportsIndex, TypeVar

from coredata.datasets.protocol import Dataset
from coredata.loading.state import make_state, read_place, read_state
from coredata.sampling import BatchSampler
from coredata.sampling.checks import whole_number

BatchT = TypeVar("BatchT")
LoaderT = TypeVar("LoaderT", bound="Loader")


class Loader(Iterator[BatchT], ABC):
    """An iterator of batches with one exact position; abstract.

    The position counts what was handed out, not what was read ahead, in samples of all ranks. So
    a state continues exactly on another number of ranks, with another micro batch, or in another
    framework: make the loader there, over the same dataset, and `load_state_dict` it. (An order
    that itself depends on the ranks, as the cyclic sampler's with `data_sharding`, is refused.)

    A subclass says how a batch is read (`_take`), and how what runs ahead of it ends (`_halt`).
    One loader is for one consumer: `next` is not to be called by two threads.

    Attributes:
        dataset: what is read.
        sampler: which samples are taken, and where the loader starts.
    """

    def __init__(self, dataset: Dataset, sampler: BatchSampler) -> None:
        self.dataset = dataset
        self.sampler = sampler
        self._consumed = int(sampler.consumed_samples)
        self._stands_at: int | None = None
        self._closed = False

    @property
    def consumed_samples(self) -> int:
        """Samples handed out so far, by all ranks together."""
        return self._consumed

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def __len__(self) -> int:
        """Batches to come from here on: to the end, or to the end of the epoch if cyclic."""
        return len(self.sampler.resume(self._consumed))

    def __iter__(self: LoaderT) -> LoaderT:
        """Itself, at its position."""
        return self

    def __next__(self) -> BatchT:
        """The next batch.

        Whatever the dataset raises comes out here, when its batch is due, with a note naming the
        samples. The position is then still before that batch: `next` tries it again.

        Raises:
            StopIteration: the samples are at an end.
            RuntimeError: the loader is closed.
        """
        if self._closed:
            raise RuntimeError(
                f"this {type(self).__name__} is closed (at consumed_samples="
                f"{self.consumed_samples}). "
                "Make another one, and load this one's state_dict() into it to go on from here"
            )
        with ExitStack() as failure:
            failure.callback(self._halt)
            consumed, batch = self._take()
            failure.pop_all()
        self._consumed, self._stands_at = consumed, None
        return batch

    def seek(self, consumed_samples: SupportsIndex) -> None:
        """Go to where `consumed_samples` samples are consumed; what was read ahead is dropped.

        Raises:
            ValueError: the sampler cannot stand there; it says why.
            TypeError: it is no integer.
            RuntimeError: the loader is closed.
        """
        self._seek(whole_number("consumed_samples", consumed_samples))

    def _seek(self, position: int) -> None:
        self._check_position(position)
        self._halt()
        self._consumed, self._stands_at = position, None

    def _check_position(self, position: int) -> None:
        """Refuse a position of the sampler at which this loader cannot go on."""
        if self._closed:
            raise RuntimeError(
                f"this {type(self).__name__} is closed, so its position cannot be changed. Make "
                "another one"
            )
        self.sampler.resume(position)

    def rewind(self) -> None:
        """Go back to where the sampler it was made with starts."""
        self._seek(self.sampler.consumed_samples)

    def state_dict(self) -> dict[str, Any]:
        """The position, as a small dict of JSON values: version, consumed samples, fingerprint.

        It may be taken at any time, also after `close`.
        """
        return make_state(self._consumed, self.fingerprint(), self._stands_at)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue where a state was taken, on whatever ranks and framework that was.

        Whatever it raises, the loader stays where it is.

        Raises:
            TypeError: the state is not a mapping.
            ValueError: the state is malformed, of an unknown version, or at a position that this
                sampler cannot take.
            StateMismatchError: it was saved over another dataset, or one that was gone through
                in another order; each difference is named.
            RuntimeError: the loader is closed.
        """
        position, place = self._position_in(state_dict), read_place(state_dict)
        self._seek(position)
        self._stands_at = place

    def check_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Raise what `load_state_dict` would; nothing changes. So several may be loaded or none."""
        read_place(state_dict)
        self._check_position(self._position_in(state_dict))

    def _position_in(self, state_dict: Mapping[str, Any]) -> int:
        """The position of the sampler that a state of this data has; see `load_state_dict`."""
        return read_state(state_dict, self.fingerprint())

    def get_state(self) -> dict[str, Any]:
        """`state_dict`, under the name Grain's iterators have for it."""
        return self.state_dict()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """`load_state_dict`, under the name Grain's iterators have for it."""
        self.load_state_dict(state)

    def fingerprint(self) -> dict[str, Any]:
        """What the samples and their order depend on: ranks and batch sizes are not in it."""
        return full_fingerprint(self.dataset, self.sampler)

    def close(self) -> None:
        """End what runs in the background, and wait for it. Calling it again does nothing."""
        self._closed = True
        self._halt()

    def __enter__(self: LoaderT) -> LoaderT:
        """Itself; leaving the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def _take(self) -> tuple[int, BatchT]:
        """What is consumed after the next batch, and the batch; StopIteration at the end."""

    @abstractmethod
    def _halt(self) -> None:
        """Forget what was read ahead and end what reads it; the position stays."""


def full_fingerprint(dataset: Dataset | None, sampler: BatchSampler) -> dict[str, Any]:
    """What the samples and their order depend on; ranks and batch sizes are not in it."""
    contents = {} if dataset is None else dataset.fingerprint()
    return {**contents, "order": dict(sampler.order())}
