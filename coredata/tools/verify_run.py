"""Checking token files and caches one after the other, and mending them where that is safe."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from coredata.datasets.cache_check import CacheFaults, find_cache_faults
from coredata.formats import MissingFileError, write_block_checksums
from coredata.formats.repair import NotRepairableError, repair_index
from coredata.formats.verify import PairFaults, find_pair_faults
from coredata.formats.verify_checksums import find_checksum_fault, has_checksums
from coredata.formats.verify_scan import Progress
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
    """

    name: str
    kind: str
    facts: dict[str, Any]
    faults: tuple[tuple[str, str], ...]
    repaired: str = ""
    refused: str = ""
    seconds: float = 0.0

    @property
    def sound(self) -> bool:
        """Whether it is sound now."""
        return not self.faults or bool(self.repaired)


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

    With `write_checksums`, those of each sound pair are written beside it.
    """
    for prefix in targets.pairs:
        start = time.perf_counter()
        checked = _pair(find_pair_faults(prefix, vocab_size, progress=progress))
        if checked.faults and repair is not None:
            checked = _mend_pair(checked, repair, vocab_size)
        if write_checksums and checked.sound:
            write_block_checksums(prefix)
            checked = replace(checked, facts={**checked.facts, "checksums": "written"})
        elif checked.facts and has_checksums(prefix):
            checked = _with_checksums(checked)
        yield replace(checked, seconds=time.perf_counter() - start)
    for files in targets.caches:
        start = time.perf_counter()
        found = find_cache_faults(files)
        checked = _cache(found)
        if checked.faults and repair is not None:
            checked = replace(checked, repaired=_set_aside(found))
        yield replace(checked, seconds=time.perf_counter() - start)


def _pair(found: PairFaults) -> Checked:
    facts = {} if found.facts is None else {**vars(found.facts)}
    facts.pop("path_prefix", None)
    faults = tuple((type(fault).__name__, str(fault)) for fault in found.faults)
    return Checked(found.path_prefix, "pair", facts, faults)


def _with_checksums(checked: Checked) -> Checked:
    """The same, after comparing the files with the checksums beside them."""
    fault = find_checksum_fault(checked.name)
    checked = replace(checked, facts={**checked.facts, "checksums": "compared"})
    if fault is None:
        return checked
    faults = (*checked.faults, (type(fault).__name__, str(fault)))
    return replace(checked, faults=faults, repaired="", refused=checked.repaired)


def _mend_pair(checked: Checked, options: RepairOptions, vocab_size: int | None) -> Checked:
    try:
        done = repair_index(
            checked.name, eod=options.eod, dtype=options.dtype, vocab_size=options.vocab_size
        )
    except (NotRepairableError, MissingFileError) as error:
        return replace(checked, refused=str(error))
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


def _set_aside(found: CacheFaults) -> str:
    """Give the description another name, so that the cache is built again; nothing is deleted."""
    path = found.files.path("description.txt")
    if "description.txt" not in found.files.names:
        return "nothing to do: without a description it is built again on first use"
    aside, number = f"{path}.damaged", 1
    while os.path.exists(aside):
        number += 1
        aside = f"{path}.damaged-{number}"
    os.rename(path, aside)
    return f"renamed the description to {aside}, so that the cache is built again on first use"


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
