"""The one place that opens an fsspec file system; imported only when a URL is really used."""

from collections.abc import Mapping
from typing import Any

from coredata.storage.options import file_system_options

_EXTRAS = {"s3": "s3", "s3a": "s3", "msc": "msc"}
"""The extra of this library that brings the package for a scheme."""


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
    try:
        remote, key = fsspec.core.url_to_fs(url, **file_system_options(storage_options))
    except (ImportError, ValueError) as error:
        scheme = url.partition("://")[0].rpartition("::")[2]
        unknown = isinstance(error, ImportError) or "not known" in str(error)
        if unknown and scheme in _EXTRAS:
            raise ImportError(
                f"{url} needs a package that is not installed: pip install "
                f"'coredata[{_EXTRAS[scheme]}]' ({error})"
            ) from error
        raise
    return remote, key


def reading_options(
    url: str, storage_options: Mapping[str, Any] | None, connections: int
) -> dict[str, Any]:
    """Options of a file system of its own, for many requests at once that are not retried in it.

    Whoever reads through it tries again by itself, with a deadline over everything. What the user
    sets wins.
    """
    options = {**file_system_options(storage_options), "skip_instance_cache": True}
    if url.startswith(("s3://", "s3a://")):
        ours = {"max_pool_connections": connections, "retries": {"max_attempts": 0}}
        options["config_kwargs"] = {**ours, **options.get("config_kwargs", {})}
    return options
