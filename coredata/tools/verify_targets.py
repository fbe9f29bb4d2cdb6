"""What the paths given to `coredata verify` hold: pairs of files, and caches."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from coredata.datasets.cache_files import (
    SET_ASIDE,
    CacheFiles,
    files_set_aside,
    find_caches,
    unfinished_files,
)
from coredata.formats import get_bin_path, get_idx_path
from coredata.storage import exists, expand, is_directory, join, local_path
from coredata.tools.output import count_of

_SUFFIXES = (".bin", ".idx")


@dataclass(frozen=True)
class Targets:
    """What to check.

    Attributes:
        pairs: prefixes of token files, of which a half may be missing.
        caches: cached datasets.
        notes: what else was seen: temporary files of builds that were killed.
        unread: directories that could not be looked through, and why.
    """

    pairs: tuple[str, ...]
    caches: tuple[CacheFiles, ...]
    notes: tuple[str, ...]
    unread: tuple[str, ...] = ()


def find_targets(paths: Iterable[str]) -> Targets:
    """What is at each path: a prefix, one of its two files, or a directory, looked through whole.

    Raises:
        FileNotFoundError: nothing is there; or a directory without anything to check.
    """
    pairs: dict[str, None] = {}
    caches: list[CacheFiles] = []
    notes: list[str] = []
    unread: list[str] = []
    for path in paths:
        if not is_directory(path):
            pairs[_prefix(path)] = None
            continue
        before, aside = len(pairs) + len(caches) + len(unread), 0
        for directory, names in _walk(path, unread.append):
            stems = {name[:-4] for name in names if name.endswith(_SUFFIXES)}
            pairs.update(dict.fromkeys(join(directory, stem) for stem in sorted(stems)))
            if local_path(directory) is not None:
                caches.extend(find_caches(directory))
                notes.extend(
                    f"{os.path.join(directory, name)} is left from a build that was killed, or "
                    "belongs to one that is going on; in the first case it can be deleted"
                    for name in unfinished_files(directory)
                )
                renamed = len(files_set_aside(directory))
                aside += renamed
                if renamed:
                    notes.append(
                        f"{directory} holds {count_of(renamed, 'file')} *{SET_ASIDE} of caches "
                        "that a repair set aside; nothing uses them, and they can be deleted"
                    )
        if len(pairs) + len(caches) + len(unread) + aside == before:
            raise FileNotFoundError(
                f"{path} holds no .bin/.idx pairs and no caches; give another directory, or "
                "prefixes"
            )
    return Targets(tuple(pairs), tuple(caches), tuple(notes), tuple(unread))


def find_present(paths: Iterable[str]) -> tuple[Targets, tuple[str, ...]]:
    """What is at those paths where something is, and what is to be said of the others."""
    found, missing = [], []
    for path in paths:
        try:
            found.append(find_targets([path]))
        except FileNotFoundError as error:
            missing.append(str(error))
    caches = {(files.directory, files.key): files for one in found for files in one.caches}
    return Targets(
        tuple(dict.fromkeys(pair for one in found for pair in one.pairs)),
        tuple(caches.values()),
        tuple(dict.fromkeys(note for one in found for note in one.notes)),
        tuple(dict.fromkeys(text for one in found for text in one.unread)),
    ), tuple(missing)


def _prefix(path: str) -> str:
    """The prefix that a path means: itself, or that of the file it names."""
    for half in (get_bin_path(path), get_idx_path(path)):
        if exists(half):
            return path
    if path.endswith(_SUFFIXES) and exists(path):
        return path[:-4]
    raise FileNotFoundError(
        f"{get_bin_path(path)} and {get_idx_path(path)} do not exist, and {path} is no directory"
        + _nearest(path)
    )


def _nearest(path: str) -> str:
    """Names beside a local path that look like it."""
    import difflib

    local = local_path(path)
    directory = os.path.dirname(local) if local else ""
    if local is None or not os.path.isdir(directory or "."):
        return "; give a path without .bin and .idx"
    names = os.listdir(directory or ".")
    stems = {name[:-4] for name in names if name.endswith(_SUFFIXES)}
    near = difflib.get_close_matches(os.path.basename(local), sorted(stems), n=3, cutoff=0.5)
    if not near:
        return "; give a path without .bin and .idx"
    return "; there is " + ", ".join(os.path.join(directory, name) for name in near)


def _walk(path: str, unread: Callable[[str], None]) -> Iterable[tuple[str, list[str]]]:
    """Directories and the names of their files; of a URL, only the directory itself.

    `unread` is told of each directory that could not be looked through.
    """
    local = local_path(path)
    if local is None:
        names = [name.rsplit("/", 1)[-1] for name in expand(join(path, "*"))]
        return [(path.rstrip("/"), names)]

    def failed(error: OSError) -> None:
        unread(f"{error.filename} could not be looked through: {error.strerror}")

    found = []
    for directory, _, names in sorted(os.walk(local, onerror=failed)):
        if names and not os.access(directory, os.X_OK):
            unread(f"{directory} could not be looked through: its files may not be opened")
        else:
            found.append((directory, sorted(names)))
    return found
