"""Checking token files and caches one after the other, and mending them where that is safe."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from coredata.datasets.cache_check import CacheFaults, find_cache_faults
from coredata.datasets.cache_files import SET_ASIDE, CacheFiles
from coredata.formats import (
    IndexedDatasetError,
    MissingFileError,
    get_bin_path,
    get_idx_path,
    write_block_checksums,
)
from coredata.formats.repair import NotRepairableError, repair_index
from coredata.formats.verify import PairFaults, find_pair_faults
from coredata.formats.verify_checksums import find_checksum_fault, has_checksums
from coredata.formats.verify_scan import Progress
from coredata.storage import checksum_path
from coredata.tools.verify_targets import Targets


@dataclass(frozen=True)
class Checked:
    """One thing that was checked.

    Attributes:
        name: a prefix, or the directory of a cache and how its files begin.
        kind: "pair" or "cache".
        facts: what it holds, as JSON values.
        faults: (class of fault, text) of each that was found.
        repaired: what was mended; "" if nothing was.
        refused: why it was not mended, if that was tried; else "".
        seconds: how long it took.
        unread: why it could not be checked, or not whole; "" if it could. It is not known to be
            sound then, nor to be damaged.
        unwritten: why what was to be written was not; "" if it was, or nothing was to be.
    """

    name: str
    kind: str
    facts: dict[str, Any]
    faults: tuple[tuple[str, str], ...]
    repaired: str = ""
    refused: str = ""
    seconds: float = 0.0
    unread: str = ""
    unwritten: str = ""

    @property
    def sound(self) -> bool:
        """Whether it is sound now, as far as it is known."""
        return not self.damaged and not self.unread

    @property
    def damaged(self) -> bool:
        """Whether something was found wrong and not mended."""
        return bool(self.faults) and not self.repaired


@dataclass(frozen=True)
class RepairOptions:
    """What repairs may rely on; see `coredata.formats.repair.repair_index`."""

    eod: int | None = None
    dtype: str | None = None
    vocab_size: int | None = None


def check_all(
    targets: Targets,
    vocab_size: int | None = None,
    repair: RepairOptions | None = None,
    progress: Progress | None = None,
    write_checksums: bool = False,
) -> Iterator[Checked]:
    """Check everything; with `repair`, mend what can be, and check it again.

    With `write_checksums`, those of each sound pair are written beside it, unless there are some:
    then the pair is held to them, and they are kept. What cannot be read or written is told of
    that pair or cache, and is no fault of it.
    """
    for prefix in targets.pairs:
        start = time.perf_counter()
        checked = _check_pair(prefix, vocab_size, repair, progress, write_checksums)
        yield replace(checked, seconds=time.perf_counter() - start)
    for files in targets.caches:
        start = time.perf_counter()
        checked = _check_cache(files, repair is not None)
        yield replace(checked, seconds=time.perf_counter() - start)


def _check_pair(
    prefix: str,
    vocab_size: int | None,
    repair: RepairOptions | None,
    progress: Progress | None,
    write_checksums: bool,
) -> Checked:
    try:
        checked = _pair(find_pair_faults(prefix, vocab_size, progress=progress))
    except OSError as error:  # of this pair only; the others are checked all the same
        return Checked(prefix, "pair", {}, (), unread=f"could not be checked: {error}")
    if checked.faults and repair is not None:
        try:
            checked = _mend_pair(checked, repair, vocab_size)
        except OSError as error:
            checked = replace(checked, unwritten=f"the repair could not be written: {error}")
    try:
        if checked.facts and has_checksums(prefix):
            return _with_checksums(checked, write_checksums)
    except OSError as error:
        return replace(checked, unread=f"could not be compared with its checksums: {error}")
    if write_checksums and checked.sound:
        try:
            write_block_checksums(prefix)
        except OSError as error:
            return replace(checked, unwritten=_unwritten(prefix, error))
        return replace(checked, facts={**checked.facts, "checksums": "written"})
    return checked


def _unwritten(prefix: str, error: OSError) -> str:
    """Why there are no checksums: the tokens could not be read, or the file not be written."""
    path = checksum_path(get_bin_path(prefix))
    return f"the checksums could not be written to {path}: {error}"


def _check_cache(files: CacheFiles, repair: bool) -> Checked:
    name = os.path.join(files.directory, files.key)
    for part in map(files.path, files.names):
        if os.path.exists(part) and not os.access(part, os.R_OK):
            facts = {"class": files.class_name, "split": files.split_name}
            return Checked(name, "cache", facts, (), unread=f"{part} may not be read")
    checked = _cache(find_cache_faults(files))
    if checked.faults and repair:
        try:
            return _mend_cache(checked, files)
        except OSError as error:
            return replace(checked, unwritten=f"its files could not be renamed: {error}")
    return checked


def _pair(found: PairFaults) -> Checked:
    facts = {} if found.facts is None else {**vars(found.facts)}
    facts.pop("path_prefix", None)
    faults = tuple((type(fault).__name__, str(fault)) for fault in found.faults)
    return Checked(found.path_prefix, "pair", facts, faults)


def _with_checksums(checked: Checked, asked_to_write: bool) -> Checked:
    """The same, after comparing the files with the checksums beside them."""
    fault = find_checksum_fault(checked.name)
    checked = replace(checked, facts={**checked.facts, "checksums": "compared"})
    if fault is None:
        return checked
    path = checksum_path(get_bin_path(checked.name))
    text = f"{fault}. If the pair was changed on purpose, or repaired, after {path} was written"
    text += ", remove that file and give --write-checksums"
    if asked_to_write:
        text += "; it was kept as it was"
    faults = (*checked.faults, (type(fault).__name__, text))
    done = f"{checked.repaired}; but the checksums fit the old one" if checked.repaired else ""
    return replace(checked, faults=faults, repaired="", refused=done or checked.refused)


def _mend_pair(checked: Checked, options: RepairOptions, vocab_size: int | None) -> Checked:
    try:
        done = repair_index(
            checked.name, eod=options.eod, dtype=options.dtype, vocab_size=options.vocab_size
        )
    except (NotRepairableError, MissingFileError) as error:
        return replace(checked, refused=str(error))
    except IndexedDatasetError:
        path = get_idx_path(checked.name)
        return replace(
            checked,
            refused=f"{path} does not say what it describes. If every document ends in one id, "
            "move that file away and give --repair --eod ID --dtype TYPE: it is made from the "
            "tokens then",
        )
    except FileExistsError:
        return replace(
            checked, refused="the index is sound, and tokens are not changed by a repair"
        )
    again = find_pair_faults(checked.name, vocab_size)
    kept = "" if done.kept is None else f"; the old one is {done.kept}"
    now = _pair(again)
    if again.faults:
        return replace(now, refused=f"{done.path}: {done.what}{kept}, but the faults above remain")
    return replace(now, faults=checked.faults, repaired=f"{done.path}: {done.what}{kept}")


def _cache(found: CacheFaults) -> Checked:
    files = found.files
    facts = {
        "class": files.class_name,
        "split": files.split_name,
        "arrays": {name: list(shape) for name, shape in found.shapes.items()},
        "bytes": files.size,
        "checksums": found.checksums,
        "compared_with_data": found.compared,
    }
    faults = tuple(("CacheError", fault) for fault in found.faults)
    return Checked(os.path.join(files.directory, files.key), "cache", facts, faults)


def _mend_cache(checked: Checked, files: CacheFiles) -> Checked:
    """Give the files of a cache other names, so that it is built again; nothing is deleted."""
    if "description.txt" not in files.names:
        return replace(
            checked,
            refused="without a description it is not used, and is built again when it is needed. "
            "Its files are left, as its build may be going on; if none is, they can be deleted: "
            f"{files.path('*')}",
        )
    others = [name for name in files.names if name != "description.txt"]
    suffix, number = SET_ASIDE, 1
    while any(os.path.exists(files.path(name + suffix)) for name in files.names):
        number += 1
        suffix = f"{SET_ASIDE}-{number}"
    for name in ("description.txt", *others):  # without it, the others are not used
        os.rename(files.path(name), files.path(name + suffix))
    return replace(
        checked,
        repaired=f"renamed its files to *{suffix}, so that it is built again on first use; they "
        "can be deleted",
    )


def mixed_dtypes(checked: list[Checked]) -> str:
    """A remark where token files have several dtypes; "" where they do not."""
    found: dict[str, str] = {}
    for one in checked:
        if "dtype" in one.facts:
            found.setdefault(one.facts["dtype"], one.name)
    if len(found) < 2:
        return ""
    listed = ", ".join(f"{dtype} in {name}" for dtype, name in sorted(found.items()))
    return (
        f"several dtypes: {listed}. A blend may hold them together; `coredata merge` needs --widen"
    )
