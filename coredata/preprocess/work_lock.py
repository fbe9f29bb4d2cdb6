"""One run at a time works in a local directory."""

import contextlib
import os
from collections.abc import Iterator

from coredata.formats.errors import IndexedDatasetError
from coredata.formats.merge_kept import locked_partial
from coredata.preprocess.errors import PreprocessError
from coredata.storage import local_path

LOCK = "lock"
"""File in the directory that is locked; it is deleted last."""


@contextlib.contextmanager
def hold_directory(path: str) -> Iterator[None]:
    """Make the directory, if it is local, and keep other processes out of it.

    Raises:
        PreprocessError: another process works in it.
        OSError: it cannot be made or written; of the kind that the system gave.
    """
    local = local_path(path)
    if local is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        with saying_where(path):
            stack.enter_context(_locked(path, local))
        yield


def _locked(path: str, local: str) -> contextlib.ExitStack:
    while True:
        os.makedirs(local, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked_partial(os.path.join(local, LOCK), path))
            except FileNotFoundError:  # a run that ended in between has taken it away
                continue
            except IndexedDatasetError as error:
                raise PreprocessError(
                    f"another process is preprocessing into {path.removesuffix('.parts')}; wait "
                    "for it, or give another output prefix (--output-prefix)"
                ) from error
            return stack.pop_all()


@contextlib.contextmanager
def saying_where(path: str) -> Iterator[None]:
    """Let errors of files say that `path` is the directory of a run's work."""
    try:
        yield
    except OSError as error:
        if local_path(path) is None:  # storage says it
            raise
        reason = error.strerror or str(error)
        raise type(error)(
            f"{path} is where preprocess keeps its work until the output is complete, "
            f"and it cannot be written ({reason}). Give an output prefix (--output-prefix) in "
            "a directory that you may write to and that has room, or make this one so"
        ) from error
