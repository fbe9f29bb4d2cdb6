"""Data sets named `owner/repo`: which files of a repository on the Hub are its train split."""

import os
import re
from collections.abc import Mapping
from typing import Any

from coredata.storage.paths import is_url
from coredata.storage.remote import filesystem

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]*/[A-Za-z0-9][A-Za-z0-9._\-]*")
_KINDS = (
    (".parquet", ".pq"),
    (".jsonl", ".jsonl.gz", ".jsonl.zst"),
    (".json", ".json.gz", ".json.zst"),
)
_DATA = tuple(ending for kind in _KINDS for ending in kind)
_TRAIN = re.compile(r"(^|[/._\-])(train|training)([/._\-]|$)")
_OTHER = re.compile(
    r"(^|[/._\-])(test|testing|eval|evaluation|dev|val|valid|validation)([/._\-]|$)"
)
_SHOWN = 10


def is_hub_name(path: str) -> bool:
    """Whether `path` means a data set on the Hub: `owner/repo`, and no local file.

    A name that ends like a data file (`data/train.jsonl`) is a file that is missing.
    """
    return (
        not is_url(path)
        and _NAME.fullmatch(path) is not None
        and not path.endswith(_DATA)
        and not os.path.exists(path)
    )


def hub_files(repository: str, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """URLs of the files of the train split of `owner/repo`, sorted.

    Parquet files are preferred to .jsonl, and these to .json. Of one kind, those with "train" in
    their path; if there are none, all that belong to no other split by their name.

    Raises:
        FileNotFoundError: no such repository, or no data file in it.
        ValueError: files in more than one directory (several configurations); the text names them.
        ImportError: the package huggingface_hub is missing.
    """
    url = f"hf://datasets/{repository}"
    remote, key = filesystem(url, storage_options)
    try:
        found = sorted(str(name) for name in remote.find(key))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{repository} is neither a local file nor a data set on the Hub. For a file, give "
            "its path from here (./…) or an absolute one"
        ) from error
    files = [name[len(key) :].lstrip("/") for name in found]
    chosen = _train_files(files)
    if not chosen:
        shown = ", ".join(files[:_SHOWN]) or "none"
        raise FileNotFoundError(
            f"{url} has no file of a train split that ends in {', '.join(_DATA)}; its files: "
            f"{shown}{' …' if len(files) > _SHOWN else ''}"
        )
    directories = sorted({os.path.dirname(name) or "." for name in chosen})
    if len(directories) > 1:
        raise ValueError(
            f"{url} has train files in several directories ({', '.join(directories[:_SHOWN])}), "
            f"so it is several data sets. Give the URL of one, such as "
            f"{url}/{directories[-1]}/*{os.path.splitext(chosen[0])[1]}"
        )
    return [f"{url}/{name}" for name in chosen]


def _train_files(files: list[str]) -> list[str]:
    for kind in _KINDS:
        of_kind = [name for name in files if name.endswith(kind)]
        train = [name for name in of_kind if _TRAIN.search(name)]
        chosen = train or [name for name in of_kind if not _OTHER.search(name)]
        if chosen:
            return chosen
    return []
