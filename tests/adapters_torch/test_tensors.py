import numpy as np
import pytest
import torch
from coredata_torch import (
    FetchedBatch,
    PaddedToLongest,
    TorchBatchSampler,
    TorchDataset,
    as_tensors,
    collate,
    stack_samples,
)
from torch.utils.data import DataLoader

from coredata.sampling import MegatronPretrainingSampler, PaddedPretrainingSampler
from coredata.testing import assert_same_batch


def test_tensors_share_the_memory_of_arrays():
    tokens = np.arange(6).reshape(2, 3)
    fields = as_tensors({"tokens": tokens, "number": np.int32(7)})
    fields["tokens"][1, 2] = 99
    assert tokens[1, 2] == 99
    assert fields["number"].item() == 7
    assert fields["number"].dtype == torch.int32


@pytest.mark.parametrize(
    "array",
    [
        np.arange(4, dtype=">i4"),
        np.arange(4)[::-1],
        np.broadcast_to(np.int64(3), (2, 2)),
        np.arange(4, dtype=np.uint16),
        np.array([True, False]),
    ],
)
def test_any_array_becomes_a_tensor(array):
    before = array.copy()
    tensor = as_tensors({"field": array})["field"]
    np.testing.assert_array_equal(tensor.numpy(), before)
    if not array.flags.writeable:
        tensor.fill_(0)
        np.testing.assert_array_equal(array, before)


def test_text_is_refused():
    with pytest.raises(TypeError, match=r"field name has the type <U4.*leave the field out"):
        as_tensors({"name": np.array("text")})


def test_a_batch_is_fetched_at_once_and_not_copied(numbers):
    fetched = TorchDataset(numbers).__getitems__([3, -1, 5])
    assert len(fetched) == 3
    batch = collate(fetched)
    assert all(
        np.shares_memory(batch[name].numpy(), array) for name, array in fetched.fields.items()
    )
    expected = numbers.get_batch(np.array([3, -1, 5]))
    assert_same_batch({k: v.numpy() for k, v in batch.items()}, expected, "batch")


def test_a_fetched_batch_looks_like_its_samples():
    fetched = FetchedBatch({"a": np.arange(6).reshape(3, 2)})
    assert [sample["a"].tolist() for sample in fetched] == [[0, 1], [2, 3], [4, 5]]
    assert fetched[-1]["a"].tolist() == [4, 5]
    with pytest.raises(IndexError, match="sample 3 of a batch of 3"):
        fetched[3]


@pytest.mark.parametrize("function", [collate, None])
def test_a_plain_data_loader_reads_it(numbers, function):
    sampler = MegatronPretrainingSampler(97, 90, 2, 0, 1)
    loader = DataLoader(
        TorchDataset(numbers), batch_sampler=TorchBatchSampler(sampler), collate_fn=function
    )
    assert len(loader) == 3
    batches = list(loader)
    assert [b["tokens"][:, 0].tolist() for b in batches] == [[360, 364], [368, 372], [376, 380]]


def test_one_sample(numbers):
    dataset = TorchDataset(numbers)
    assert len(dataset) == 97
    assert dataset[3]["tokens"].tolist() == [12, 13, 14, 15]
    assert dataset[None]["loss_mask"].tolist() == dataset[-1]["loss_mask"].tolist() == [0, 0, 0, 0]


def test_different_lengths_are_padded_to_the_longest(ragged):
    padded = PaddedToLongest(ragged)
    batch = padded.get_batch(np.array([0, 2, -1]))
    assert batch["tokens"].tolist() == [[1, 0, 0], [3, 3, 3], [1, 0, 0]]
    assert batch["loss_mask"].tolist() == [[1, 0, 0], [1, 1, 1], [0, 0, 0]]
    assert batch["original_seq_len"].tolist() == [[1], [3], [1]]
    assert len(padded) == 20
    assert padded.fingerprint() == ragged.fingerprint()
    assert padded[2]["tokens"].tolist() == [3, 3, 3]
    assert len(padded.__getitems__([1, 2])) == 2


def test_no_samples_are_a_batch_without_rows(ragged):
    """As wide as batch padding, whose sample here has one token."""
    batch = PaddedToLongest(ragged).get_batch(np.array([], np.int64))
    kinds = {name: (array.shape, array.dtype.name) for name, array in batch.items()}
    assert kinds == {
        "tokens": ((0, 1), "int64"),
        "loss_mask": ((0, 1), "float32"),
        "original_seq_len": ((0, 1), "int32"),
    }


def test_collate_stacks_samples_of_any_dataset(ragged):
    sampler = PaddedPretrainingSampler(20, 17, 2, 0, 1)
    loader = DataLoader(
        TorchDataset(PaddedToLongest(ragged)),
        batch_sampler=TorchBatchSampler(sampler),
        collate_fn=collate,
    )
    assert [batch["tokens"].shape for batch in loader] == [(2, 4), (2, 5)]
    assert collate([ragged[1], ragged[2]])["tokens"].tolist() == [[2, 2, 0], [3, 3, 3]]


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ([], "no samples to stack"),
        ([{"a": 1}, {"b": 1}], r"sample 1 of the batch has the fields \['b'\], sample 0 has"),
        ([{"a": np.zeros((1, 2))}, {"a": np.zeros((1, 3))}], "field a has the shapes"),
        ([{"a": np.zeros(2)}, {"a": np.zeros(())}], "first axis alone"),
    ],
)
def test_samples_that_do_not_stack(samples, text):
    with pytest.raises(ValueError, match=text):
        stack_samples(samples)


def test_storage_is_told_of_samples_to_come_through_padding(ragged):
    hints = []
    PaddedToLongest(ragged).prefetch(np.arange(3))  # of no use to it
    ragged.prefetch = lambda indices: hints.append(indices.tolist())
    PaddedToLongest(ragged).prefetch(np.arange(3))
    assert hints == [[0, 1, 2]]
