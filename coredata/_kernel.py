"""The one way a kernel is compiled: lazily, cached on disk, without the GIL."""

import inspect
from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` with Numba on its first call.

    Nothing is compiled at import. Compiled code is cached beside the source, in the user's cache
    directory where that cannot be written, and only in memory where neither can. It runs without
    the GIL, so that several threads may run kernels at once.

    A type checker that decorated every function of a module (as the test run does) is looked
    through: Numba needs the function as it was written.
    """
    plain = inspect.unwrap(function)
    # Kernels are not passed to C as callbacks: half of the wrappers need not be compiled.
    try:
        return numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(plain)
    except RuntimeError:  # Numba found no directory that it may write to
        return numba.njit(nogil=True, no_cfunc_wrapper=True)(plain)
