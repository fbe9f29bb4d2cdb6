"""What every dataset promises, as one assert."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from coredata.datasets.protocol import PADDING, Batch, Dataset
from coredata.testing.compare import assert_same_array, assert_same_batch


def assert_dataset_contract(dataset: Any, *, samples: int = 8) -> None:
    """A dataset keeps what the library, torch and Grain rely on.

    - its length is a whole number, and the sample after the last is an `IndexError`
    - a sample alone, from `__getitems__` and as a row of `get_batch` is the same, in any order,
      any number of times, and from several threads at once
    - a batch of no samples has the fields and shapes of any other
    - `PADDING` (and None) give the shapes of a sample, without loss, and change no other row
    - what a caller writes into a batch shows nowhere else
    - it can be pickled, and the copy gives the same
    - its fingerprint is JSON and does not change

    Args:
        dataset: at least one sample; all have the same fields and shapes.
        samples: how many to look at, spread from the first to the last.

    Raises:
        AssertionError: a promise is broken; it says which, and where.
    """
    if not isinstance(dataset, Dataset):
        raise AssertionError(
            f"{type(dataset).__name__} lacks a method of Dataset: __len__, __getitem__, "
            "__getitems__, get_batch or fingerprint"
        )
    count = len(dataset)
    if count < 1:
        raise AssertionError("the dataset is empty; the contract needs at least one sample")
    fingerprint = _fingerprint(dataset)
    chosen = np.unique(np.linspace(0, count - 1, samples).astype(np.int64))
    batch = dataset.get_batch(chosen)
    for field, array in batch.items():
        if len(array) != len(chosen):
            raise AssertionError(f"get_batch, field {field}: {len(array)} rows of {len(chosen)}")
    _assert_samples_alone(dataset, chosen, batch)
    _assert_any_order(dataset, chosen, batch)
    _assert_no_samples(dataset, batch)
    _assert_padding(dataset, chosen, batch)
    _assert_nothing_shared(dataset, chosen)
    _assert_past_the_end(dataset, count)
    copy = pickle.loads(pickle.dumps(dataset))
    assert_same_batch(copy.get_batch(chosen), batch, "get_batch of a pickled copy")
    if not _fingerprint(dataset) == _fingerprint(copy) == fingerprint:
        raise AssertionError(
            f"fingerprint: it was {fingerprint}, is {_fingerprint(dataset)} after reading, and "
            f"{_fingerprint(copy)} in a pickled copy; it must not change"
        )


def _fingerprint(dataset: Dataset) -> Any:
    """The fingerprint as JSON text."""
    try:
        return json.dumps(dict(dataset.fingerprint()), sort_keys=True)
    except TypeError as error:
        raise AssertionError(f"fingerprint: JSON cannot hold it: {error}") from error


def _assert_samples_alone(dataset: Dataset, chosen: np.ndarray, batch: Batch) -> None:
    """One by one and several at once are the rows of the batch."""
    together = dataset.__getitems__(chosen.tolist())
    if len(together) != len(chosen):
        raise AssertionError(f"__getitems__: {len(together)} samples of {len(chosen)}")
    for row, sample in enumerate(chosen.tolist()):
        expected = {field: array[row] for field, array in batch.items()}
        assert_same_batch(dataset[sample], expected, f"sample {sample}")
        assert_same_batch(together[row], expected, f"sample {sample} from __getitems__")


def _assert_any_order(dataset: Dataset, chosen: np.ndarray, batch: Batch) -> None:
    """Backwards, repeated, and from several threads."""
    backwards = np.concatenate([chosen[::-1], chosen[:1]])
    expected = {field: np.concatenate([array[::-1], array[:1]]) for field, array in batch.items()}
    assert_same_batch(dataset.get_batch(backwards), expected, "get_batch in another order")
    with ThreadPoolExecutor(4) as pool:
        for again in pool.map(dataset.get_batch, [chosen] * 8):
            assert_same_batch(again, batch, "get_batch from several threads")


def _assert_no_samples(dataset: Dataset, batch: Batch) -> None:
    """A batch without rows."""
    none = dataset.get_batch(np.empty(0, np.int64))
    expected = {field: array[:0] for field, array in batch.items()}
    assert_same_batch(none, expected, "get_batch of no samples")


def _assert_padding(dataset: Dataset, chosen: np.ndarray, batch: Batch) -> None:
    """Padding has shapes and no loss, alone and among others."""
    padded = dataset.get_batch(np.insert(chosen, 1, PADDING))
    rest = {field: np.delete(array, 1, axis=0) for field, array in padded.items()}
    assert_same_batch(rest, batch, "get_batch, samples beside batch padding")
    alone = dataset[None]
    expected = {field: array[1] for field, array in padded.items()}
    assert_same_batch(alone, expected, "batch padding, sample None")
    if "loss_mask" in padded and np.any(padded["loss_mask"][1] != 0):
        raise AssertionError("batch padding: its loss_mask is not zero everywhere")


def _assert_nothing_shared(dataset: Dataset, chosen: np.ndarray) -> None:
    """Write into everything that can be written to; read again."""
    before = {field: array.copy() for field, array in dataset.get_batch(chosen).items()}
    padding = dataset.get_batch(np.array([PADDING, *chosen.tolist()]))
    for given in (dataset.get_batch(chosen), padding, dataset[int(chosen[0])]):
        for value in given.values():
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value[...] = np.zeros((), value.dtype)
    for field, array in dataset.get_batch(chosen).items():
        assert_same_array(array, before[field], f"after writing into a batch: field {field}")


def _assert_past_the_end(dataset: Dataset, count: int) -> None:
    """There is no sample number `count`."""
    for read in (dataset.__getitem__, lambda index: dataset.get_batch(np.array([index]))):
        try:
            read(count)
        except IndexError:
            continue
        raise AssertionError(f"sample {count} of {count}: expected an IndexError, got a sample")
