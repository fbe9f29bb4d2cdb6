"""Settings that make no sense, found before any work is done."""

import os
import stat
from collections.abc import Sequence

from coredata.preprocess.errors import PreprocessError
from coredata.storage import local_path

_OF_ONE_PROCESS = "memory://"
_KINDS = (
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISDIR, "a directory"),
)


def check_keys(keys: Sequence[str]) -> None:
    """Keys become parts of file names.

    Raises:
        PreprocessError: no keys, a key named twice, or one that cannot be part of a file name.
    """
    if not keys:
        raise PreprocessError("json_keys is empty; name at least one key, such as 'text'")
    for key in keys:
        if keys.count(key) > 1:
            raise PreprocessError(f"json_keys names {key!r} twice; name each key once")
        if not key or "/" in key or "\0" in key:
            raise PreprocessError(
                f"the key {key!r} cannot be part of a file name, as in PREFIX_KEY_document.bin; "
                "rename it in the data, for example to 'text'"
            )


def check_writable(output_prefix: str) -> None:
    """Web servers take no files.

    Raises:
        PreprocessError: the output is to go to one.
    """
    scheme = output_prefix.partition("://")[0].lower()
    if output_prefix.lower().startswith(("http://", "https://")):
        raise PreprocessError(
            f"{output_prefix}: {scheme}:// cannot be written; give a local path, or a URL of a "
            "store, such as s3://bucket/prefix"
        )


def check_least(name: str, value: int | None, least: int) -> None:
    """A number that, if given, has a least value.

    Raises:
        PreprocessError: it is too small.
    """
    if value is not None and value < least:
        raise PreprocessError(f"{name}={value}, but at least {least} is needed")


def check_regular(path: str) -> None:
    """Input is read in stretches, some of it twice: a pipe gives its bytes once, in order.

    Raises:
        PreprocessError: a local path that is there, and is no regular file.
    """
    local = local_path(path)
    if local is None:
        return
    mode = os.stat(local).st_mode
    if stat.S_ISREG(mode):
        return
    kind = next((kind for is_of, kind in _KINDS if is_of(mode)), "of an unknown kind")
    raise PreprocessError(
        f"{path} is {kind}, but input must be a regular file: it is read in stretches, and again "
        "when a stopped run goes on. Write it to a file first, for example with "
        "cat … > input.jsonl, and name that"
    )


def check_report(inputs: Sequence[str], report: str) -> None:
    """The report of bad lines replaces what is there, which must not be input.

    Raises:
        PreprocessError: it is one of the input files.
    """
    for path in inputs:
        local, other = local_path(path), local_path(report)
        same = local is not None and other is not None and _same_file(local, other)
        if path == report or same:
            raise PreprocessError(
                f"{path} is an input, and the report of bad lines would replace it. If it is the "
                "report of an earlier run, leave it out of the input; otherwise name another file "
                "for the report, such as error_report='bad.jsonl' (--error-report bad.jsonl)"
            )


def _same_file(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def check_reach(inputs: Sequence[str], output_prefix: str, workers: int) -> None:
    """Worker processes do not see this one's memory.

    Raises:
        PreprocessError: memory:// together with several workers.
    """
    for path in [*inputs, output_prefix]:
        if workers > 1 and path.startswith(_OF_ONE_PROCESS):
            raise PreprocessError(
                f"{path} is in the memory of this process, where {workers} workers cannot reach "
                "it; use workers=1"
            )
