"""Whole files and streams, read from local paths and URLs alike."""

import io
from collections.abc import Mapping
from typing import Any

from coredata.storage.paths import local_path
from coredata.storage.remote import filesystem

_BUFFER = 1 << 20


def open_binary(path: str, storage_options: Mapping[str, Any] | None = None) -> io.BufferedReader:
    """A stream of the bytes of `path`, read from the start; the caller closes it.

    Raises:
        FileNotFoundError: there is no such file.
    """
    local = local_path(path)
    if local is not None:
        return io.BufferedReader(io.FileIO(local), _BUFFER)
    remote, key = filesystem(path, storage_options)
    return io.BufferedReader(remote.open(key, "rb"), _BUFFER)


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
    remote, key = filesystem(path, storage_options)
    return bytes(remote.cat_file(key))
