"""How parts of kernels are compiled: not by themselves, but with the kernels that call them."""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes


class PartLibrary(JITCodeLibrary):
    """Code of a part, to be linked into kernels.

    LLVM optimises it and makes machine code of it there. Numba would do both for the part too, and
    again for each part that calls it: a sixth of the time that kernels take to compile.
    """

    def _optimize_final_module(self) -> None:
        """Left to kernels."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No machine code, as of what Python cannot call."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> "PartLibrary":
        """Who is told where the Python objects are that the code uses."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Left to kernels."""


class PartCompiler(Compiler):
    """Numba's compiler, with another kind of library."""

    def define_pipelines(self) -> Any:
        """Numba's steps; the library that they fill is made here."""
        state = self.state
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return _without_needless(super().define_pipelines())


class KernelCompiler(Compiler):
    """Numba's compiler, for kernels that have parts."""

    def define_pipelines(self) -> Any:
        """Numba's steps, without those for what kernels do not have."""
        return _without_needless(super().define_pipelines())

    def compile_extra(self, func: Any) -> Any:
        """Tells the code of all parts where its Python objects are, as Numba does when loading."""
        result = super().compile_extra(func)
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
        return result


def _without_needless(pipelines: Any) -> Any:
    """Steps that look for functions in functions, and for arithmetic on whole arrays."""
    for steps in pipelines:
        steps.passes = [
            step for step in steps.passes if step[0] not in (InlineClosureLikes, NopythonRewrites)
        ]
    return pipelines
