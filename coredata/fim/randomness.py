"""Random draws that belong to a sample, not to the order in which samples are read."""

import hashlib
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coredata._typing import Integer


@runtime_checkable
class Draws(Protocol):
    """The two draws infilling makes; `numpy.random.RandomState` is one."""

    def binomial(self, n: int, p: float) -> Any:
        """How many of `n` trials of probability `p` succeed."""
        ...

    def randint(self, low: int, high: int, size: int) -> Integer[np.ndarray, " size"]:
        """`size` integers from `low` up to, without, `high`."""
        ...


class SampleDraws:
    """One random stream per sample number, the same in any process, order or restart.

    The streams are those of the counter-based generator Philox4x64-10 (Salmon et al., "Parallel
    random numbers: as easy as 1, 2, 3", 2011). Its 128-bit key is the start of the SHA-256 digest
    of seed and identity; the sample number is a word of its counter above those that a stream can
    use up, so that no two samples of a dataset share a draw and nothing is computed to get to a
    sample. numpy's legacy `RandomState` turns it into draws, since its algorithms are frozen.

    An object may be used by one thread at a time; make one per batch.
    """

    def __init__(self, seed: int, identity: str) -> None:
        """Streams for the dataset called `identity`; any integer is a legal seed."""
        digest = hashlib.sha256(f"coredata.fim/1\0{seed}\0{identity}".encode()).digest()
        self._philox = np.random.Philox(key=int.from_bytes(digest[:16], "little"), counter=0)
        self._random = np.random.RandomState(self._philox)
        self._start: Any = self._philox.state

    def at(self, sample: int) -> np.random.RandomState:
        """The draws of sample number `sample`, from their start.

        The same object every time: what it was before is gone.

        Raises:
            ValueError: a negative sample number.
        """
        if sample < 0:
            raise ValueError(f"Sample numbers start at 0, found {sample}.")
        self._start["state"]["counter"][2] = sample
        self._philox.state = self._start
        return self._random
