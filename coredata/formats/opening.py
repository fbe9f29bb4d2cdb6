"""Opening many token files behind URLs at once, as a run does when it starts."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from coredata.formats.indexed import IndexedDataset
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.storage import (
    checksum_path,
    local_path,
    looked_up,
    open_copied,
    read_options,
)


@contextlib.contextmanager
def prepared(
    prefixes: Sequence[str | os.PathLike[str]], storage_options: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """Make it quick to open the token files of these prefixes, inside the `with` block.

    Those behind URLs are looked up together (listings tell of a thousand objects at once), and
    indices of which this host has no copy yet are downloaded at the same time. Opening a file
    then costs no request. What is missing or broken is left for whoever opens it. Local prefixes
    are passed over.

    Raises:
        StorageError: storage does not answer.
    """
    remote = [
        path
        for path in dict.fromkeys(os.fspath(prefix) for prefix in prefixes)
        if local_path(path) is None
    ]
    if not remote:
        yield
        return
    options = read_options(storage_options)
    urls = [of(prefix) for prefix in remote for of in (get_idx_path, get_bin_path)]
    if options.checksums:
        urls += [checksum_path(get_bin_path(prefix)) for prefix in remote]
    with looked_up(urls, storage_options):
        with ThreadPoolExecutor(options.requests, "coredata-open") as pool:
            list(pool.map(lambda prefix: _copy(prefix, storage_options), remote))
        yield


def open_many(
    prefixes: Sequence[str | os.PathLike[str]],
    multimodal: bool = False,
    mmap: bool = True,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> list[IndexedDataset]:
    """Open several token files; those behind URLs at the same time. In the order of `prefixes`.

    Raises:
        MissingFileError, IndexedDatasetError: as `IndexedDataset`, for the first that cannot be
            opened.
        StorageError: storage does not answer.
    """
    with prepared(prefixes, storage_options):
        return [
            IndexedDataset(prefix, multimodal, mmap, storage_options=storage_options)
            for prefix in prefixes
        ]


def _copy(prefix: str, storage_options: Mapping[str, Any] | None) -> None:
    # Whoever opens it meets the same error, and knows what it was for.
    with contextlib.suppress(OSError, ValueError):
        open_copied(get_idx_path(prefix), storage_options).view()
