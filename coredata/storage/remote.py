"""The one place that opens an fsspec file system; imported only when a URL is really used."""

from collections.abc import Mapping
from typing import Any

from coredata.storage.options import file_system_options


def filesystem(url: str, storage_options: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """The fsspec file system behind `url`, and the path of `url` inside it.

    Raises:
        ModuleNotFoundError: fsspec itself is missing.
        ImportError: the URL's scheme needs a package that is missing; the text names it.
        ValueError: fsspec knows no such scheme.
    """
    try:
        import fsspec
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{url} is a URL, and URLs are read through fsspec, which is not installed; "
            "pip install fsspec"
        ) from error
    remote, key = fsspec.core.url_to_fs(url, **file_system_options(storage_options))
    return remote, key
