"""An exception on its way from a worker process: its type, its notes and where it was raised."""

import pickle
import traceback
from dataclasses import dataclass
from typing import Any, NoReturn, final

_UNPICKLABLE = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.PickleError,
)
"""What pickling an exception, and making it again, may raise."""


class WorkerTraceback(Exception):
    """The traceback of a worker, as text: the cause of what is raised again here."""


@final
@dataclass(frozen=True)
class WorkerFailure:
    """What a worker gives in place of a batch.

    torch itself makes a new exception of the type out of the traceback's text, without notes and
    attributes, and a `RuntimeError` where the type wants more than a text; of a type that cannot be
    pickled, nothing arrives at all, and the reader waits for ever.

    Attributes:
        data: the pickled exception; if it cannot be pickled, its type, arguments and notes; if not
            even the type can be, a `RuntimeError` that names it.
        where: the traceback.
    """

    data: bytes
    where: str

    @classmethod
    def of(cls, error: Exception) -> "WorkerFailure":
        """That of an exception."""
        where = "\n" + "".join(traceback.format_exception(error))
        notes = list(getattr(error, "__notes__", []))
        texts = tuple(arg if isinstance(arg, str | int) else repr(arg) for arg in error.args)
        for form in (error, _Plain(type(error), texts, notes)):
            try:
                data = pickle.dumps(form)
                if type(_error(data)) is type(error):
                    return cls(data, where)
            except _UNPICKLABLE:
                continue
        told = (f"{type(error).__name__}: {error}",)
        return cls(pickle.dumps(_Plain(RuntimeError, told, notes)), where)

    def raise_again(self) -> NoReturn:
        """Raise the exception, with the worker's traceback as its cause."""
        raise _error(self.data) from WorkerTraceback(self.where)


@final
class Caught:
    """Keeps an exception that is raised inside the `with`, to be sent."""

    failure: WorkerFailure | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, Exception):
            self.failure = WorkerFailure.of(error)
        return self.failure is not None


@dataclass(frozen=True)
class _Plain:
    """An exception whose own way of being made again does not work."""

    kind: type[Exception]
    args: tuple[Any, ...]
    notes: list[str]

    def error(self) -> Exception:
        error = self.kind.__new__(self.kind, *self.args)
        error.args = self.args
        for note in self.notes:
            error.add_note(note)
        return error


def _error(data: bytes) -> Exception:
    form = pickle.loads(data)
    return form.error() if isinstance(form, _Plain) else form
