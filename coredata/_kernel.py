"""The one way kernels are compiled: lazily, cached on disk, without the GIL."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import numba
from numba.extending import register_jitable

from coredata._kernel_cache import LOADS_ALONE, KernelCache, load_extensions
from coredata._kernel_parts import KernelCompiler, PartCompiler


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` with Numba on its first call.

    Nothing is compiled at import. Compiled code is cached beside the source, in the user's cache
    directory where that cannot be written, and only in memory where neither can. It runs without
    the GIL, so that several threads may run kernels at once, and call them for the first time.

    A type checker that decorated every function of a module (as the test run does) is looked
    through: Numba needs the function as it was written.
    """
    plain = inspect.unwrap(function)
    # Kernels are not passed to C as callbacks: half of the wrappers need not be compiled.
    options = {"nogil": True, "no_cfunc_wrapper": True}
    if not LOADS_ALONE:
        try:
            return numba.njit(cache=True, **options)(plain)
        except RuntimeError:  # Numba found no directory that it may write to
            return numba.njit(**options)(plain)
    compiled = numba.njit(pipeline_class=KernelCompiler, **options)(plain)
    compiled._compilation_chain_init_hook = load_extensions
    with contextlib.suppress(RuntimeError):  # as above
        compiled._cache = KernelCache(plain)
    return compiled


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let kernels call `function`, which is compiled with each of them.

    It costs less to compile than a kernel: nothing is made for calls from Python, where it is the
    Python function that it was.
    """
    options = {"pipeline_class": PartCompiler} if LOADS_ALONE else {}
    return register_jitable(no_cfunc_wrapper=True, **options)(inspect.unwrap(function))


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A `part` that is copied to where kernels call it.

    Otherwise LLVM calls what is large and has several callers, and each of many arrays costs time
    to hand over: for calls in inner loops. LLVM optimises it before that, which makes the fastest
    code of a loop.
    """
    return register_jitable(no_cfunc_wrapper=True, forceinline=True)(inspect.unwrap(function))
