"""Is a cache what it should be? Its files, its arrays against each other and against the data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata.datasets.cache_contents import arrays_of, check_contents
from coredata.datasets.cache_files import CacheFiles
from coredata.datasets.checksum import checksum
from coredata.datasets.index_pack import unpacked
from coredata.datasets.npy import DamagedFileError, open_npy


@dataclass(frozen=True)
class CacheFaults:
    """What was found of one cache.

    Attributes:
        files: which.
        shapes: array name -> its shape, of those that could be opened.
        compared: whether the arrays were compared with the data that they are for.
        checksums: whether there are checksums, which the arrays have.
        faults: what is wrong, in words.
    """

    files: CacheFiles
    shapes: Mapping[str, tuple[int, ...]]
    compared: bool
    checksums: bool
    faults: tuple[str, ...]


def find_cache_faults(files: CacheFiles) -> CacheFaults:
    """Check description, headers, checksums and contents of a cache.

    The arrays of GPT datasets are held to the token file if it is where the description says:
    every document once an epoch, every row of the sample index S tokens after the one before, a
    shuffle index that is a permutation. Without the file they are held to each other. Those of a
    blend must draw each dataset's samples in order. A sentence map must have every sentence once
    an epoch, each row in one document. Of arrays of other classes, headers and checksums are
    checked.
    """
    faults: list[str] = []
    description: dict[str, Any] = {}
    try:
        description = files.description()
        if description.get("class") != files.class_name:
            faults.append(
                f"{files.path('description.txt')} is of class {description.get('class')!r}, but "
                f"is named {files.class_name}"
            )
    except (ValueError, OSError) as error:
        faults.append(str(error))
    arrays: dict[str, np.ndarray] = {}
    for name in files.arrays:
        try:
            arrays[name] = open_npy(files.path(f"{name}.npy"))
        except (DamagedFileError, OSError) as error:
            faults.append(str(error))
    recorded = _recorded(files, faults)
    faults.extend(_checksum_faults(files, arrays, recorded))
    faults.extend(_pack_faults(files, arrays))
    compared = False
    known = set(files.arrays) | {
        name for name, record in (recorded or {}).items() if "dtype" in record
    }
    names = arrays_of(files.class_name, known)
    faults.extend(
        f"{files.path(f'{name}.npy')} is missing"
        for name in sorted(known.union(names).difference(files.arrays))
    )
    if names and not faults:
        try:
            compared = check_contents(names, description, arrays)
        except (ValueError, OSError, LookupError) as error:
            faults.append(f"{files.path('')}…: {error}")
    shapes = {name: array.shape for name, array in arrays.items()}
    return CacheFaults(files, shapes, compared, recorded is not None, tuple(faults))


def _recorded(files: CacheFiles, faults: list[str]) -> dict[str, Any] | None:
    if "checksums.json" not in files.names:
        return None
    path = files.path("checksums.json")
    try:
        with open(path, encoding="utf-8") as file:
            recorded = json.load(file)
    except (ValueError, OSError) as error:
        faults.append(f"{path} cannot be read: {error}")
        return None
    if not isinstance(recorded, dict):
        faults.append(f"{path} is not a JSON object")
        return None
    return recorded


def _checksum_faults(
    files: CacheFiles, arrays: Mapping[str, np.ndarray], recorded: Mapping[str, Any] | None
) -> list[str]:
    if recorded is None:
        return []
    faults = []
    for name, array in arrays.items():
        found = {"dtype": array.dtype.str, "shape": list(array.shape), "checksum": checksum(array)}
        if found != recorded.get(name):
            faults.append(
                f"{files.path(f'{name}.npy')} has {found}; {recorded.get(name)} was written"
            )
    return faults


def _pack_faults(files: CacheFiles, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """What is wrong with the copy of small arrays, while it counts."""
    if "arrays.pack" not in files.names:
        return []
    path = files.path("arrays.pack")
    try:
        with open(path, "rb") as file:
            kept = unpacked(file.read(), None, files.path(""))
    except (DamagedFileError, OSError) as error:
        return [str(error)]
    return [
        f"{path} has another {name} than {files.path(f'{name}.npy')}"
        for name, array in (kept or {}).items()
        if name in arrays and not np.array_equal(array, arrays[name])
    ]
