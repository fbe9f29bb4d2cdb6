"""Do the arrays of a cache say what they should? Held to the data, or to each other."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coredata.datasets.blended_index import NAMES as BLEND_ARRAYS
from coredata.datasets.blended_index import first_bad_entry
from coredata.datasets.builder_plan import WHOLE
from coredata.datasets.gpt_index_check import check_indices
from coredata.datasets.gpt_index_holder import NAMES as GPT_ARRAYS
from coredata.datasets.gpt_index_plan import GPTIndexPlan
from coredata.datasets.masked_index import NAME as SENTENCE_MAP
from coredata.datasets.masked_index import SentenceMapPlan
from coredata.datasets.npy import DamagedFileError
from coredata.formats import IndexedDataset
from coredata.indices import SEPARATE_FINAL_EPOCH_THRESHOLD, SentenceSettings, Split, split_range


def arrays_of(class_name: str, known: set[str]) -> tuple[str, ...]:
    """The arrays that a cache of a class has; () for classes whose contents are not known here."""
    if class_name.startswith(("GPT", "MockGPT")):
        return GPT_ARRAYS
    if class_name == "BlendedDataset":
        return BLEND_ARRAYS
    if class_name.endswith("MaskedWordPieceDataset"):
        return (SENTENCE_MAP,)
    kinds = (GPT_ARRAYS, BLEND_ARRAYS)  # a user's subclass
    return next((names for names in kinds if known.issuperset(names)), ())


def check_contents(
    names: tuple[str, ...], description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> bool:
    """Check the arrays of a cache; whether they were compared with the data that they are for.

    Args:
        names: what `arrays_of` gave.
        description: what identifies the dataset.
        arrays: by name.

    Raises:
        DamagedFileError: they are not what they should be; it says where.
        ValueError, LookupError: a description that describes no such dataset.
    """
    if names == BLEND_ARRAYS:
        _check_blend(description, arrays)
        return False
    path = description.get("dataset_path")
    there = path is not None and IndexedDataset.exists(path)
    if names == (SENTENCE_MAP,):
        return there and _check_sentences(str(path), description, arrays[SENTENCE_MAP])
    if there:
        check_indices(_plan(str(path), description), arrays, trusted=False)
    else:
        _check_alone(arrays)
    return there


def _check_alone(arrays: Mapping[str, np.ndarray]) -> None:
    """Hold the arrays of a GPT dataset to each other."""
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


def _check_sentences(path: str, description: Mapping[str, Any], rows: np.ndarray) -> bool:
    source = IndexedDataset(path)
    SentenceMapPlan(
        document_indices=source.document_indices,
        sequence_lengths=source.sequence_lengths,
        documents=_documents(description, len(source.document_indices) - 1),
        num_samples=description["num_samples"],
        settings=SentenceSettings(
            max_length=description["sequence_length"],
            short_sequence_probability=description["short_sequence_probability"],
            min_sentences=2 if description.get("classification_head") else 1,
            random_seed=description["random_seed"],
        ),
        source=path,
    ).check(rows, trusted=False)
    return True


def _documents(description: Mapping[str, Any], elements: int) -> np.ndarray:
    """What the split covers of so many elements."""
    matrix = description["split_matrix"]
    bookends = WHOLE if matrix is None else matrix[Split[description["index_split"]].value]
    return np.arange(*split_range((bookends[0], bookends[1]), elements))


def _plan(path: str, description: Mapping[str, Any]) -> GPTIndexPlan:
    lengths = IndexedDataset(path).sequence_lengths
    return GPTIndexPlan(
        sequence_lengths=lengths,
        documents=_documents(description, len(lengths)),
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
