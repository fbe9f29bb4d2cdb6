"""What Numba does before the first run of a kernel: no more than needed, a thread at a time."""

from typing import Any

import numba
from numba.core import entrypoints
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys

LOADS_ALONE = (0, 60) <= numba.version_info.short <= (0, 68)
"""Whether this is a release of Numba that this module was tried with, at its insides."""


def load_extensions() -> None:
    """Let installed packages (awkward is one) register their types with Numba, once.

    Numba does it before it takes the lock under which it compiles, and notes that it is done
    before it is. A second thread then compiles while the first registers, and fails with
    "dictionary changed size during iteration". Under that lock it waits.
    """
    with global_compiler_lock:
        entrypoints.init_all()


class KernelCache(FunctionCache):
    """Loads compiled code, and not first all that Numba can compile.

    Numba's own cache does that before it looks: 0.3 s in every process, half of them for SciPy
    where that is installed. Compiled code needs only the runtime that counts references. What
    compiling needs, Numba loads before it compiles, here too.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled version for types `sig`; None where there is none yet."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
        return None  # the guard has swallowed an error
