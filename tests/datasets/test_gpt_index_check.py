"""Reading index arrays through: each kind of fault is found and placed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.datasets.gpt_index_check import check_indices
from coredata.datasets.gpt_index_plan import GPTIndexPlan
from coredata.datasets.npy import DamagedFileError


def plan(lengths, **options):
    return GPTIndexPlan(
        **{
            "sequence_lengths": np.array(lengths, np.int32),
            "documents": np.arange(len(lengths), dtype=np.int32),
            "num_samples": None,
            "sequence_length": 16,
            "random_seed": 1,
            "add_extra_token": True,
            "drop_last_partial_sequence": True,
            "separate_final_epoch_threshold": 0.80,
            "source": "some data",
            **options,
        }
    )


EVEN = plan([13] * 25)


def build(made):
    return dict(vars(made.build()))


def changed(arrays, name, change):
    array = arrays[name].copy()
    change(array)
    return {**arrays, name: array}


def set_to(place, value):
    def change(array):
        array[place] = value

    return change


def repeat_third(array):
    array[7] = array[3]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("document_index", set_to(4, -1), "entry 4 of the document index is a document that"),
        ("document_index", set_to(4, 25), "entry 4 of the document index is a document that"),
        ("document_index", repeat_third, "entry 7 of the document index .* occurs too often"),
        ("sample_index", set_to((0, 1), 1), "row 0 of the sample index does not start"),
        ("sample_index", set_to((5, 0), 0), "row 5 of the sample index does not start"),
        ("sample_index", set_to((5, 0), 25), "row 5 of the sample index does not start"),
        ("sample_index", set_to((5, 1), 3), "row 5 of the sample index does not start"),
        ("shuffle_index", set_to(4, 20), "entry 4 of the shuffle index is out of range"),
        ("shuffle_index", repeat_third, "entry 7 of the shuffle index repeats"),
    ],
)
def test_faults(name, change, message):
    indices = changed(build(EVEN), name, change)
    check_indices(EVEN, indices, trusted=True)
    with pytest.raises(DamagedFileError, match=message):
        check_indices(EVEN, indices, trusted=False)


def test_arrays_made_without_the_extra_token():
    """Of the same sizes; a sample that ends with a document would look for a token beyond it."""
    other = build(replace(EVEN, add_extra_token=False))
    assert other["sample_index"].shape == build(EVEN)["sample_index"].shape
    with pytest.raises(DamagedFileError, match="row 13 of the sample index"):
        check_indices(EVEN, other, trusted=False)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("name", ["document_index", "sample_index", "shuffle_index"])
def test_sizes(name, trusted):
    arrays = build(EVEN)
    for wrong in (arrays[name][:-1], arrays[name].astype(np.float32), arrays[name].reshape(-1, 1)):
        with pytest.raises(DamagedFileError, match=rf"{name} is .* 25 documents with 325 tokens"):
            check_indices(EVEN, {**arrays, name: wrong}, trusted)


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=10),
    sequence_length=st.integers(1, 12),
    num_samples=st.none() | st.integers(1, 30),
    extra=st.booleans(),
    drop_last=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_is_built_passes(lengths, sequence_length, num_samples, extra, drop_last, seed):
    made = plan(
        lengths,
        num_samples=num_samples if sum(lengths) else None,
        sequence_length=sequence_length,
        add_extra_token=extra,
        drop_last_partial_sequence=drop_last,
        random_seed=seed,
    )
    check_indices(made, build(made), trusted=False)
