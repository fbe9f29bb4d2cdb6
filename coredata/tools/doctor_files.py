"""What `coredata doctor` sees of local files without reading them: names, headers, sizes."""

import os
import shlex
from collections.abc import Iterable, Iterator

from coredata.storage import local_path
from coredata.tools.doctor_checks import Finding
from coredata.tools.output import count_of

_CHECKED = "header and sizes fit; `coredata verify` reads the rest"


def check_local(targets: Iterable[str], prefixes: Iterable[str]) -> Iterator[Finding]:
    """Whether files are there, and whether headers and sizes of token files fit.

    Args:
        targets: files, directories, prefixes, or halves of a pair; URLs are passed over.
        prefixes: token files or files of rows, without patterns.
    """
    for path in dict.fromkeys([*targets, *prefixes]):
        local = local_path(path)
        if local is not None and not any(sign in local for sign in "*?["):
            yield _look(path, local)


def _look(name: str, local: str) -> Finding:
    stem, suffix = os.path.splitext(local)
    if suffix in (".bin", ".idx"):
        return _pair(name, stem)
    if os.path.exists(f"{local}.bin") or os.path.exists(f"{local}.idx"):
        return _pair(name, local)
    if os.path.isdir(local):
        return Finding("ok", name, "a directory; its files are not looked at")
    if not os.path.exists(local):
        remedy = "give the path of a file, or of a pair without .bin and .idx"
        return Finding("fault", name, "does not exist", remedy)
    if not os.access(local, os.R_OK):
        return Finding("fault", name, "may not be read", "change its permissions")
    if not os.path.getsize(local):
        return Finding("fault", name, "is empty (0 bytes)", "write or copy it again")
    return Finding("ok", name, "is there; its content is not read")


def _pair(name: str, prefix: str) -> Finding:
    from coredata.formats import IndexedDataset

    there = [half for half in (".bin", ".idx") if os.path.exists(prefix + half)]
    if not there:
        remedy = "give the path of a pair without .bin and .idx"
        return Finding("fault", name, "does not exist", remedy)
    if len(there) == 1:
        missing = ".bin" if there == [".idx"] else ".idx"
        remedy = (
            "copy it from where the pair was written"
            if missing == ".bin"
            else f"copy it, or `coredata verify {shlex.quote(prefix)} --repair --eod ID`"
        )
        found = f"{prefix}{missing} is missing, {prefix}{there[0]} is there"
        return Finding("fault", name, found, remedy)
    try:
        sequences = len(IndexedDataset(prefix))
    except (ValueError, OSError) as error:
        remedy = f"write or copy it again; `coredata verify {shlex.quote(prefix)}` tells more"
        return Finding("fault", name, str(error), remedy)
    return Finding("ok", name, f"{count_of(sequences, 'sequence')}, {_CHECKED}")
