"""Whole files and streams, read from local paths and URLs alike."""

import contextlib
import io
from collections.abc import Mapping
from typing import Any

from coredata.storage.faults import NoRangesError
from coredata.storage.object_stream import ObjectStream
from coredata.storage.paths import local_path
from coredata.storage.remote import filesystem

_BUFFER = 1 << 20


def open_binary(
    path: str, storage_options: Mapping[str, Any] | None = None, *, stop: int | None = None
) -> io.BufferedReader:
    """A stream of the bytes of `path`, read from the start; the caller closes it.

    What is behind a URL is read under the rules that hold for all reading (see `ObjectStream`),
    unless only the whole of it can be had, or one file system is laid over another (`::`).

    Args:
        path: a local path or any URL.
        storage_options: for a URL.
        stop: where reading will end, as far as is known; nothing behind it is fetched ahead.

    Raises:
        FileNotFoundError: there is no such file.
    """
    local = local_path(path)
    if local is not None:
        return io.BufferedReader(io.FileIO(local), _BUFFER)
    return io.BufferedReader(_remote_stream(path, storage_options, stop), _BUFFER)


def _remote_stream(path: str, storage_options: Mapping[str, Any] | None, stop: int | None) -> Any:
    if "::" not in path:
        with contextlib.suppress(NoRangesError):
            return ObjectStream(path, storage_options, stop)
    remote, key = filesystem(path, storage_options)
    return remote.open(key, "rb")


def open_text_stream(
    path: str,
    storage_options: Mapping[str, Any] | None = None,
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
) -> io.TextIOWrapper:
    r"""A stream of the text of `path`; lines end only at "\n", as written; the caller closes it.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return io.TextIOWrapper(
        open_binary(path, storage_options), encoding=encoding, errors=errors, newline="\n"
    )


def read_bytes(path: str, storage_options: Mapping[str, Any] | None = None) -> bytes:
    """The whole file.

    Raises:
        FileNotFoundError: there is no such file.
    """
    local = local_path(path)
    if local is not None:
        with open(local, "rb") as file:
            return file.read()
    with open_binary(path, storage_options) as stream:
        return stream.read()
