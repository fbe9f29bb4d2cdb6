"""What it says when it is asked for something that cannot be."""

import inspect

import numpy as np
import pytest
from coredata_jax import BatchLayout, PackedBatches, ShardedBatches, load_balanced_order
from coredata_jax.checks import check_rows
from meshes import mesh_of

from coredata.datasets.protocol import Dataset
from coredata.loading import StateMismatchError
from coredata.sampling import BatchSizeRampUp
from coredata.testing import ArrayDataset, numbered_dataset

MESH = mesh_of(data=4, model=2)
NUMBERS = numbered_dataset(40, 4)

BAD = {
    "rows": (
        {"global_batch_size": 10},
        r"10 rows .* 4 shards \(data_axes: data=4\)\. 8 would work",
    ),
    "no rows": ({"global_batch_size": 0}, r"0 rows .* 4 would work"),
    "ramp-up": (
        {"global_batch_size": BatchSizeRampUp(4, 2, 10, 8)},
        "6 rows cannot be split evenly over 4 shards .* would work",
    ),
    "axis": (
        {"data_axes": ("batch",)},
        "data_axes: the mesh has no axis 'batch'; its axes are data=4, model=2. Give one of these",
    ),
    "sequence axis": ({"sequence_axis": "cp"}, "sequence_axis: the mesh has no axis 'cp'"),
    "twice": ({"sequence_axis": "data"}, "sequence_axis: axis 'data' is given twice"),
    "order": ({"load_balanced": True}, "load_balanced: it is an order along sequence_axis"),
    "dtype": ({"integer_dtype": "int16"}, 'integer_dtype: got \'int16\', need "int32" or "int64"'),
    "wide": ({"integer_dtype": "int64"}, "jax_enable_x64"),
    "start": ({"consumed_samples": 41}, "consumed_samples: 41 of 40"),
    "prefetch": ({"prefetch": -1}, "prefetch is -1, expected 0"),
    "device prefetch": ({"device_prefetch": -1}, "device_prefetch is -1, expected 0 or more"),
}


@pytest.mark.parametrize("case", BAD)
def test_settings(case):
    options, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        ShardedBatches(NUMBERS, **{"global_batch_size": 8, "mesh": MESH, **options})


def first(dataset: Dataset, **options):
    with ShardedBatches(dataset, 4, MESH, "data", "model", prefetch=0, **options) as run:
        return next(run)


def test_a_sequence_that_its_axis_does_not_divide():
    with pytest.raises(ValueError, match=r"'model' of size 2 .* of 5 tokens; .* 4 would work"):
        first(numbered_dataset(8, 5))
    with pytest.raises(ValueError, match=r"6 tokens; it takes a multiple of 4 \(twice .* 8 would"):
        first(numbered_dataset(8, 6), load_balanced=True)
    with pytest.raises(ValueError, match="Pad it to 8"):
        load_balanced_order(6, 2)


def test_a_batch_without_fields_of_the_sequence():
    with pytest.raises(ValueError, match=r"found none of them among the fields \['x'\]"):
        first(ArrayDataset({"x": np.zeros((8, 4), np.int32)}))
    ragged = ArrayDataset({"tokens": np.zeros((8, 4), int), "labels": np.zeros((8, 6), int)})
    with pytest.raises(ValueError, match=r"need one length .*'tokens': 4, 'labels': 6"):
        first(ragged)


class Varying:
    """Batches as those of a `VarlenDataset`: arrays of objects."""

    def __len__(self):
        return 8

    def fingerprint(self):
        return {}

    def __getitem__(self, index):
        return {"tokens": np.arange(index + 1)}

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def get_batch(self, indices):
        tokens = np.empty(len(indices), object)
        tokens[:] = [np.arange(index + 1) for index in indices]
        return {"tokens": tokens}


def test_samples_of_different_lengths_and_those_that_cannot_be_packed():
    with pytest.raises(ValueError, match=r"its samples differ in length\. Pack them with Packed"):
        first(Varying())
    with (
        ShardedBatches(Varying(), 4, MESH, prefetch=0) as run,
        pytest.raises(TypeError, match=r"field tokens has samples of different lengths.*PackedBat"),
    ):
        next(run)
    with pytest.raises(ValueError, match=r"tokens of shape \(4,\) has no second axis.*Name those"):
        first(ArrayDataset({"tokens": np.zeros(8, int)}))
    bert = ArrayDataset({"text": np.zeros((8, 4), int), "loss_mask": np.zeros((8, 4), np.float32)})
    text = r"have no tokens and no labels, only text, loss_mask; .* Give a VarlenDataset or an SFT"
    for lengths in (None, np.full(8, 4)):
        with (
            PackedBatches(bert, 4, 8, MESH, max_segments=2, lengths=lengths, prefetch=0) as packed,
            pytest.raises(ValueError, match=text),
        ):
            next(packed)


@pytest.mark.parametrize("value", [1.5, "8", True, None])
def test_numbers_that_are_none(value):
    """The checks of annotations, which would come first here, are left out."""
    plain = inspect.unwrap(ShardedBatches.__init__)
    with pytest.raises(TypeError, match=f"global_batch_size: got {value!r} of type"):
        inspect.unwrap(check_rows)(value, BatchLayout(MESH, ("data",), None))
    with pytest.raises(TypeError):
        plain(object.__new__(ShardedBatches), NUMBERS, value, MESH)
    with ShardedBatches(NUMBERS, 8, MESH) as run:
        with pytest.raises(TypeError, match=f"consumed_samples: got {value!r} of type"):
            inspect.unwrap(type(run).seek)(run, value)
        run.seek(np.int64(8))
        assert run.state_dict()["consumed_samples"] == 8


def test_a_dense_mask_in_balanced_order():
    masked = ArrayDataset(
        {"tokens": np.zeros((8, 4), int), "attention_mask": np.zeros((8, 1, 4, 4), bool)}
    )
    assert first(masked)["attention_mask"].shape == (4, 1, 4, 4)
    with pytest.raises(ValueError, match="create_attention_mask=False"):
        first(masked, load_balanced=True)


def test_values_that_do_not_fit():
    with pytest.raises(OverflowError, match=r"field tokens has values from 0 to 4294967296"):
        first(ArrayDataset({"tokens": np.array([[0, 2**32]] * 4)}))
    with pytest.raises(TypeError, match="field text has the type <U1"):
        first(ArrayDataset({"tokens": np.zeros((4, 2), int), "text": np.array(list("abcd"))}))


def test_after_close():
    run = ShardedBatches(NUMBERS, 8, MESH)
    next(run)
    run.close()
    state = run.state_dict()
    with pytest.raises(RuntimeError, match=r"ShardedBatches is closed \(at consumed_samples=8\)"):
        next(run)
    for use in (lambda: run.seek(0), run.rewind, lambda: run.load_state_dict(state)):
        with pytest.raises(RuntimeError, match=r"ShardedBatches is closed.*Make another one"):
            use()


def test_states_of_something_else():
    with ShardedBatches(numbered_dataset(40, 4, "other"), 8, MESH) as other:
        state = other.state_dict()
    with ShardedBatches(NUMBERS, 8, MESH) as run:
        next(run)
        with pytest.raises(StateMismatchError, match='name: the state has "other"'):
            run.load_state_dict(state)
        with pytest.raises(ValueError, match="the loader state lacks version"):
            run.load_state_dict({"consumed_samples": 8})
        with pytest.raises(ValueError, match="consumed_samples: 99 of 40"):
            run.seek(99)
        assert run.consumed_samples == 8
        assert np.asarray(next(run)["tokens"])[0, 0] == 32
