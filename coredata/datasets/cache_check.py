"""Is a cache what it should be? Its files, its arrays against each other and against the data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata.datasets.blended_index import NAMES as BLEND_ARRAYS
from coredata.datasets.blended_index import first_bad_entry
from coredata.datasets.builder_plan import WHOLE
from coredata.datasets.cache_files import CacheFiles
from coredata.datasets.checksum import checksum
from coredata.datasets.gpt_index_check import check_indices
from coredata.datasets.gpt_index_holder import NAMES as GPT_ARRAYS
from coredata.datasets.gpt_index_plan import GPTIndexPlan
from coredata.datasets.npy import DamagedFileError, open_npy
from coredata.formats import IndexedDataset
from coredata.indices import SEPARATE_FINAL_EPOCH_THRESHOLD, Split, split_range


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
    blend must draw each dataset's samples in order. Of arrays of other classes, headers and
    checksums are checked.
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
    compared = False
    known = set(files.arrays) | {
        name for name, record in (recorded or {}).items() if "dtype" in record
    }
    names = _names_of(files.class_name, known)
    faults.extend(
        f"{files.path(f'{name}.npy')} is missing"
        for name in sorted(known.union(names).difference(files.arrays))
    )
    if names and not faults:
        try:
            if names == GPT_ARRAYS:
                compared = _check_gpt(description, arrays)
            else:
                _check_blend(description, arrays)
        except (ValueError, OSError, LookupError) as error:
            faults.append(f"{files.path('')}…: {error}")
    shapes = {name: array.shape for name, array in arrays.items()}
    return CacheFaults(files, shapes, compared, recorded is not None, tuple(faults))


def _names_of(class_name: str, known: set[str]) -> tuple[str, ...]:
    """The arrays that a cache of a class has; () for classes whose contents are not known here."""
    if class_name.startswith(("GPT", "MockGPT")):
        return GPT_ARRAYS
    if class_name == "BlendedDataset":
        return BLEND_ARRAYS
    kinds = (GPT_ARRAYS, BLEND_ARRAYS)  # a user's subclass
    return next((names for names in kinds if known.issuperset(names)), ())


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


def _check_gpt(description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bool:
    """Against the data if they are there, which is returned; else against each other."""
    path = description.get("dataset_path")
    if path is not None and IndexedDataset.exists(path):
        check_indices(_plan(path, description), arrays, trusted=False)
        return True
    documents, samples, shuffle = (arrays[name] for name in GPT_ARRAYS)
    if samples.shape != (len(shuffle) + 1, 2):
        raise DamagedFileError(
            f"the sample index has shape {samples.shape}, the shuffle index {len(shuffle)} entries"
        )
    times = np.bincount(shuffle, minlength=len(shuffle))
    if len(times) != len(shuffle) or (len(times) and int(times.min()) != 1):
        raise DamagedFileError("the shuffle index is no permutation")
    times = np.bincount(documents)
    if len(times) and len(np.unique(times[times > 0])) != 1:
        raise DamagedFileError("the document index has some documents more often than others")
    positions, offsets = samples[:, 0], samples[:, 1]
    if (np.diff(positions) < 0).any() or int(positions[-1]) >= max(len(documents), 1):
        raise DamagedFileError("the sample index goes backwards, or past the document index")
    if (offsets < 0).any():
        raise DamagedFileError("the sample index has negative offsets")
    return False


def _plan(path: str, description: Mapping[str, Any]) -> GPTIndexPlan:
    lengths = IndexedDataset(path).sequence_lengths
    split = Split[description["index_split"]]
    matrix = description["split_matrix"]
    bookends = WHOLE if matrix is None else matrix[split.value]
    begin, end = split_range((bookends[0], bookends[1]), len(lengths))
    return GPTIndexPlan(
        sequence_lengths=lengths,
        documents=np.arange(begin, end),
        num_samples=description["num_samples"],
        sequence_length=description["sequence_length"],
        random_seed=description["random_seed"],
        add_extra_token=description.get("add_extra_token_to_sequence", True),
        drop_last_partial_sequence=description.get("drop_last_partial_validation_sequence", True),
        separate_final_epoch_threshold=description.get(
            "separate_final_epoch_threshold", SEPARATE_FINAL_EPOCH_THRESHOLD
        ),
        source=path,
    )


def _check_blend(description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    datasets, samples = (arrays[name] for name in BLEND_ARRAYS)
    weights, size = description["weights"], description["size"]
    expected = int(sum(weights)) if size is None else size
    if datasets.shape != (expected,) or samples.shape != (expected,):
        raise DamagedFileError(
            f"the arrays have shapes {datasets.shape} and {samples.shape}; the blend has "
            f"{expected} samples"
        )
    at = int(first_bad_entry(datasets, samples, np.zeros(len(weights), np.int64)))
    if at >= 0:
        raise DamagedFileError(
            f"entry {at} is sample {samples[at]} of dataset {datasets[at]}, which is not the next "
            f"sample of one of {len(weights)} datasets"
        )
