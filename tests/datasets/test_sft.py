"""Datasets of rows: the contract, files, the builder, blends, loaders and processes."""

import json
import multiprocessing
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coredata.datasets import (
    BlendedDataset,
    BlendedMegatronDatasetBuilder,
    EmptySplitError,
    ItemList,
    MidLevelDataset,
    MidLevelDatasetClass,
    MockSFTDataset,
    MockVarlenDataset,
    SFTDataset,
    SFTDatasetConfig,
    VarlenDataset,
    VarlenDatasetConfig,
    longest_sample,
    unstack_samples,
)
from coredata.indices import Split
from coredata.loading import BatchLoader
from coredata.sampling import MegatronPretrainingSampler
from coredata.testing import assert_dataset_contract
from coredata.testing.compare import assert_same_batch
from coredata.text import ByteConversationTokenizer, ByteTokenizer
from coredata.varlen import PackWindows, pack_samples, padding_mask

S = 32


def chat(number):
    return [
        {"role": "system", "content": ""},
        {"role": "user", "content": "q" * (number % 5)},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def write_rows(path, first, count):
    rows = [{"messages": chat(first + i), "id": i} for i in range(count)]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def files(tmp_path):
    return [
        write_rows(tmp_path / "a.jsonl", 0, 20),
        write_rows(tmp_path / "b.parquet", 100, 10),
    ]


def config_of(kind, **options):
    config = (
        SFTDatasetConfig if kind is SFTDataset or kind is MockSFTDataset else VarlenDatasetConfig
    )
    given = {"random_seed": 1, "sequence_length": S, "tokenizer": ByteConversationTokenizer()}
    return config(**{**given, **options})


def in_memory(kind, items, num_samples=None, **options):
    config = config_of(kind, blend=(["x"], None), split="1", **options)
    return kind(ItemList(items), None, np.arange(len(items)), num_samples, Split.train, config)


def text_of(sample):
    return ByteTokenizer().decode(sample["tokens"])


@pytest.mark.parametrize("kind", [SFTDataset, VarlenDataset])
def test_the_contract(kind):
    options = {"varlen_sbhd_validation": True} if kind is VarlenDataset else {}
    dataset = in_memory(kind, [chat(i) for i in range(7)], 20, **options)
    assert_dataset_contract(dataset)
    assert isinstance(dataset, MidLevelDataset)
    assert isinstance(kind, MidLevelDatasetClass)


def assert_ragged(batch, samples):
    assert batch.keys() == samples[0].keys()
    for row, sample in enumerate(samples):
        assert_same_batch({k: v[row] for k, v in batch.items()}, sample, f"row {row}")


@pytest.mark.parametrize("kind", [VarlenDataset, MockVarlenDataset, MockSFTDataset])
def test_batches_of_samples_that_differ_in_length(kind):
    if kind is VarlenDataset:
        dataset = in_memory(kind, [*map(chat, range(6)), "plain text", ""], 20)
    else:
        config = config_of(kind)
        source = kind.build_low_level_dataset(None, config)
        dataset = kind(source, None, np.arange(100), 20, Split.train, config)
    numbers = [3, 0, 19, 3, -1]
    batch = dataset.get_batch(numbers)
    samples = [dataset[number] for number in numbers]
    assert_ragged(batch, samples)
    assert_ragged(batch, unstack_samples(batch))
    assert len({len(sample["tokens"]) for sample in samples}) > 1
    assert batch["tokens"].dtype == object
    assert samples[4]["loss_mask"].sum() == 0 < samples[1]["loss_mask"].sum()
    np.testing.assert_array_equal(samples[4]["tokens"], samples[1]["tokens"])
    assert {f: v.shape[0] for f, v in dataset.get_batch([]).items()} == dict.fromkeys(batch, 0)
    copy = pickle.loads(pickle.dumps(dataset))
    assert_ragged(copy.get_batch(numbers), samples)
    assert json.dumps(dict(copy.fingerprint())) == json.dumps(dict(dataset.fingerprint()))
    with pytest.raises(IndexError, match="sample 20 was asked of the train split of"):
        dataset[20]


def test_batches_go_into_packs():
    dataset = in_memory(VarlenDataset, [*map(chat, range(9)), "text"], context_parallel_size=2)
    windows = PackWindows(dataset.lengths, limit=2 * longest_sample(dataset.config), window=4)
    plan = windows.plan(0)
    assert plan.tokens == dataset.padded_lengths(range(4)).sum()
    packed = pack_samples(unstack_samples(dataset.get_batch([0, 9, 3])))
    mask = padding_mask(packed["cu_seqlens"], packed["cu_seqlens_padded"])
    assert not packed["loss_mask"][mask].any()
    assert len(packed["tokens"]) % 4 == 0
    assert len(windows) == 3


def test_samples_come_in_the_order_of_rows_and_begin_again():
    dataset = in_memory(SFTDataset, [chat(i) for i in range(3)], 8)
    assert [text_of(dataset[i])[-8:] for i in (0, 4, 8 - 1)] == ["answer 0", "answer 1", "answer 1"]
    assert len(in_memory(SFTDataset, [chat(i) for i in range(3)])) == 3


def test_narrow_integers_on_request():
    sample = in_memory(VarlenDataset, [chat(1)], output_dtype="int32")[0]
    assert {sample[f].dtype.name for f in ("tokens", "labels", "position_ids")} == {"int32"}
    assert sample["loss_mask"].dtype == np.float32


@pytest.mark.parametrize("kind", [SFTDataset, VarlenDataset])
@pytest.mark.parametrize("threads", [1, 2])
def test_blends_of_files_through_the_builder(kind, threads, files, tmp_path):
    config = config_of(
        kind,
        blend=(files, [0.7, 0.3]),
        split="80,20,0",
        path_to_cache=str(tmp_path / "cache"),
        num_dataset_builder_threads=threads,
    )
    train, valid, test = BlendedMegatronDatasetBuilder(kind, [30, 4, 0], None, config).build()
    assert (len(train), test) == (30, None)
    assert isinstance(train, BlendedDataset)
    batch = train.get_batch(np.arange(30))
    for row in range(30):
        sample = {field: values[row] for field, values in batch.items()}
        assert_same_batch(sample, train[row], f"row {row}")
        assert ("answer 1" in text_of(sample)) >= (sample["dataset_id"] == 1)
    assert sorted(set(batch["dataset_id"].tolist())) == [0, 1]
    assert np.bincount(batch["dataset_id"]).tolist() == [21, 9]
    assert len(valid) >= 4
    again = BlendedMegatronDatasetBuilder(kind, [30, 4, 0], None, config).build()[0]
    assert again.fingerprint() == train.fingerprint()
    names = sorted(path.name.split("-", 1)[1] for path in (tmp_path / "cache").iterdir())
    assert "LineIndex-all-starts.npy" in names
    assert "BlendedDataset-train-dataset_index.npy" in names


def test_no_number_of_samples_is_one_of_each_row(files):
    config = config_of(VarlenDataset, blend=(files, None), split="50,50,0")
    train, valid, _ = BlendedMegatronDatasetBuilder(
        VarlenDataset, [None, None, None], None, config
    ).build()
    assert (len(train), len(valid)) == (15, 15)
    single = config_of(VarlenDataset, blend=(files[:1], None), split="1")
    train = BlendedMegatronDatasetBuilder(VarlenDataset, [None, 0, 0], None, single).build()[0]
    assert len(train) == 20


@pytest.mark.parametrize("kind", [MockSFTDataset, MockVarlenDataset])
def test_made_up_data_through_the_builder(kind):
    train, valid, test = BlendedMegatronDatasetBuilder(
        kind, [40, 3, None], None, config_of(kind)
    ).build()
    assert (len(train), len(valid), len(test)) == (40, 3, 333_333)
    lengths = train.dataset.sequence_lengths
    for dataset, first in ((train, 0), (valid, 333_333), (test, 666_667)):
        tokens = dataset[2]["tokens"]
        assert abs(len(tokens) - int(lengths[first + 2])) <= 1
    assert len({dataset.unique_description_hash for dataset in (train, valid, test)}) == 3


def test_an_index_in_the_cache_is_used_until_the_file_changes(tmp_path):
    path = tmp_path / "a.jsonl"
    write_rows(path, 0, 3)
    config = config_of(
        SFTDataset, blend=([str(path)], None), split="1", path_to_cache=str(tmp_path / "c")
    )
    first = SFTDataset.build_low_level_dataset(str(path), config)
    again = SFTDataset.build_low_level_dataset(str(path), config)
    assert again.rows.index.starts.tolist() == first.rows.index.starts.tolist()
    assert again[2] == first[2] == chat(2)
    write_rows(path, 7, 5)
    assert len(SFTDataset.build_low_level_dataset(str(path), config)) == 5


def test_splits_without_rows(files):
    config = config_of(SFTDataset, blend=(files[1:], None), split="1000,1,0")
    with pytest.raises(EmptySplitError, match="5 samples are asked of the valid split of"):
        BlendedMegatronDatasetBuilder(SFTDataset, [5, 5, 0], None, config).build()
    with pytest.raises(ValueError, match="2 samples are asked of the train split of unnamed data"):
        in_memory(SFTDataset, [], 2)
    assert len(in_memory(SFTDataset, [])) == 0


def test_loaders_resume_where_they_stopped():
    dataset = in_memory(VarlenDataset, [chat(i) for i in range(16)])
    sampler = MegatronPretrainingSampler(16, 0, 2, 1, 2)
    with BatchLoader(dataset, sampler) as loader:
        next(loader)
        state = json.loads(json.dumps(loader.state_dict()))
        expected = next(loader)
    with BatchLoader(dataset, sampler) as other:
        other.load_state_dict(state)
        batch = next(other)
    assert_ragged(batch, unstack_samples(expected))


def read_in_child(dataset):
    return dataset[5]["tokens"], dataset.loss_counts.samples


def test_other_processes(files):
    config = config_of(SFTDataset, blend=(files, [1, 1]), split="1")
    train = BlendedMegatronDatasetBuilder(SFTDataset, [10, 0, 0], None, config).build()[0]
    part = train.datasets[1]
    part[0]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        tokens, count = pool.apply(read_in_child, (part,))
    np.testing.assert_array_equal(tokens, part[5]["tokens"])
    assert (count, part.loss_counts.samples) == (1, 2)


def test_identity_is_the_reference_s():
    dataset = in_memory(SFTDataset, [chat(0)], 4)
    assert list(dataset.unique_identifiers) == [
        "class",
        "dataset_path",
        "num_samples",
        "index_split",
        "random_seed",
        "sequence_length",
        "split",
        "split_matrix",
        "tokenizer",
    ]
    assert '"class": "ByteTokenizer"' in dataset.unique_description


@pytest.mark.parametrize("kind", [SFTDataset, VarlenDataset])
def test_fingerprints_tell_data_and_settings_apart(kind, files):
    def of(path, rows=5, **options):
        config = config_of(kind, blend=([path], None), split="1", **options)
        source = kind.build_low_level_dataset(path, config)
        return kind(source, path, np.arange(rows), None, Split.train, config).fingerprint()

    first = of(files[0])
    others = [
        of(files[1]),
        of(files[0], rows=4),
        of(files[0], sequence_length=S * 2),
        of(files[0], tokenizer=ByteConversationTokenizer(pad=None)),
    ]
    assert first == of(files[0], context_parallel_size=2)
    assert all(first != other for other in others)
    assert str(files[0]) not in json.dumps(dict(first))
