"""Several datasets as one."""

import json
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

from coredata.datasets import (
    BlendedDataset,
    BlendedMegatronDatasetConfig,
    GPTDataset,
    GPTDatasetConfig,
    IndexCacheError,
    IndexCacheWarning,
)
from coredata.formats import IndexedDataset, IndexedDatasetBuilder
from coredata.indices import Split
from coredata.testing import (
    assert_blend_sequential,
    assert_blend_shares,
    assert_dataset_contract,
    numbered_dataset,
)
from coredata.text import ByteTokenizer


def mark(name):
    return 100_000 * ord(name[-1])


@dataclass
class Numbers:
    """Samples that tell their dataset and number, and what was asked for."""

    name: str
    samples: int
    index_split: Split = Split.train
    num_samples: int | None = None
    length: int = 4
    asked: list = field(default_factory=list)

    def __post_init__(self):
        self.unique_identifiers = {"class": "Numbers", "dataset_path": self.name}
        self._data = numbered_dataset(self.samples, self.length, self.name)
        self._data.fields["tokens"][:] += mark(self.name)

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        self.asked.append(index)
        return self._data[index]

    def __getitems__(self, indices):
        self.asked.append(list(indices))
        return self._data.__getitems__(indices)

    def get_batch(self, indices):
        self.asked.append(indices.tolist())
        return self._data.get_batch(indices)

    def fingerprint(self):
        return self._data.fingerprint()


def config(**options):
    return BlendedMegatronDatasetConfig(random_seed=1, sequence_length=4, **options)


def three(*samples):
    return [Numbers(f"data/{name}", n) for name, n in zip("abc", samples, strict=True)]


def blend(datasets=None, weights=(0.5, 0.3, 0.2), size=40, **options):
    datasets = three(30, 30, 30) if datasets is None else datasets
    return BlendedDataset(datasets, weights, size, config(**options))


def numbers_of(batch):
    """The sample numbers in the tokens of a batch."""
    return (batch["tokens"][:, 0] % 100_000 // 4).tolist()


def test_follows_the_rule_and_meets_the_contract():
    dataset = blend(weights=(5, 3, 2))
    assert len(dataset) == 40
    assert dataset.weights == [0.5, 0.3, 0.2]
    assert dataset.index_split is dataset.split is Split.train
    assert_blend_shares(dataset.dataset_index, [0.5, 0.3, 0.2])
    assert_blend_sequential(dataset.dataset_index, dataset.dataset_sample_index)
    assert dataset.blend.counts().tolist() == [20, 12, 8]
    assert dataset.dataset_index.dtype == np.int16


def test_contract():
    assert_dataset_contract(BlendedDataset(three(9, 9, 9), [9, 5, 0], None, config()))


def test_items_and_batches_agree():
    dataset = blend()
    order = [17, 3, 3, 39, 0, 8]
    batch = dataset.get_batch(np.array(order))
    items = dataset.__getitems__(order)
    assert batch["dataset_id"].dtype == np.int32
    assert batch["dataset_id"].tolist() == dataset.dataset_index[order].tolist()
    assert numbers_of(batch) == dataset.dataset_sample_index[order].tolist()
    for row, (number, item) in enumerate(zip(order, items, strict=True)):
        one = dataset[number]
        assert one.keys() == item.keys()
        assert item["tokens"][0] // 100_000 == ord("abc"[item["dataset_id"]])
        for key in batch:
            np.testing.assert_array_equal(item[key], batch[key][row])
            np.testing.assert_array_equal(one[key], batch[key][row])


def test_each_dataset_is_asked_once():
    datasets = three(30, 30, 30)
    dataset = blend(datasets)
    rows = np.arange(10)
    dataset.get_batch(rows)
    ids, samples = dataset.dataset_index[:10], dataset.dataset_sample_index[:10]
    assert [part.asked for part in datasets] == [[samples[ids == i].tolist()] for i in range(3)]
    only = np.flatnonzero(dataset.dataset_index == 2)
    dataset.get_batch(only)
    assert [len(part.asked) for part in datasets] == [1, 1, 2]


def test_padding():
    dataset = blend()
    padding = dataset[None]
    first = dataset[0]
    assert not padding["loss_mask"].any()
    assert first["loss_mask"].all()
    np.testing.assert_array_equal(padding["tokens"], first["tokens"])
    batch = dataset.get_batch(np.array([5, -1, 6, -1]))
    assert batch["loss_mask"].any(axis=1).tolist() == [True, False, True, False]
    assert batch["dataset_id"][[1, 3]].tolist() == [first["dataset_id"]] * 2
    np.testing.assert_array_equal(batch["tokens"][[0, 2]], dataset.get_batch([5, 6])["tokens"])


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (40, IndexError, "sample 40 was asked of the train blend of 3 datasets, which has 40"),
        (-2, IndexError, "sample -2"),
    ],
)
def test_wrong_numbers(index, error, message):
    for ask in (lambda: blend()[index], lambda: blend().get_batch(np.array([0, index]))):
        with pytest.raises(error, match=message):
            ask()


def test_an_empty_batch_has_all_fields():
    for dataset in (blend(), blend(size=0)):
        batch = dataset.get_batch(np.array([], np.int64))
        assert {key: value.shape for key, value in batch.items()} == {
            "dataset_id": (0,),
            **dict.fromkeys(["tokens", "labels", "loss_mask", "position_ids"], (0, 4)),
        }
        assert dataset.__getitems__([]) == []


def test_exhaustive():
    dataset = BlendedDataset(three(3, 5, 2), [3, 5, 2], None, config())
    assert len(dataset) == 10
    assert dataset.weights == [3, 5, 2]
    assert dataset.blend.counts().tolist() == [3, 5, 2]


def test_datasets_of_weight_zero_are_never_drawn():
    dataset = blend(weights=(0, 1, 1), size=20)
    assert dataset.blend.counts().tolist() == [0, 10, 10]
    assert dataset.weights == [0.0, 0.5, 0.5]
    assert blend(three(30, 0, 2), (30, 0, 2), None).blend.counts().tolist() == [30, 0, 2]


def test_many_datasets_need_wider_numbers():
    parts = [Numbers("x", 1)] * 32_768
    dataset = BlendedDataset(parts, [1] * len(parts), None, config())
    assert dataset.dataset_index.dtype == np.int32
    assert dataset[32_767]["dataset_id"] == 32_767


def test_a_blend_of_nothing():
    for weights in ((0.5, 0.3, 0.2), (0, 0, 0)):
        dataset = blend(weights=weights, size=0)
        assert len(dataset) == len(dataset.dataset_index) == 0
        with pytest.raises(IndexError, match="has no samples"):
            dataset[0]
        with pytest.raises(IndexError, match="has no samples"):
            dataset[None]


def test_datasets_that_differ():
    longer = [Numbers("data/a", 30), Numbers("data/b", 30, length=5)]
    dataset = blend(longer, (0.5, 0.5), 10)
    with pytest.raises(ValueError, match=r"dataset 1 .* gives tokens of shape \(5,\) a sample"):
        dataset.get_batch(np.arange(4))
    assert dataset[1]["tokens"].shape == (5,)


@pytest.mark.parametrize(
    ("datasets", "weights", "size", "message"),
    [
        ([], [], 10, "no datasets"),
        (None, [0.5, 0.5], 10, "3 datasets with 2 weights"),
        (None, [0.5, -0.5, 1.0], 10, r"dataset 1 \(data/b\) has weight -0\.5; .* from 0 up"),
        (None, [0.5, float("nan"), 1.0], 10, r"dataset 1 \(data/b\) has weight nan"),
        (None, [0.5, 0.5, 1.0], None, r"dataset 0 \(data/a\) has weight 0\.5; without a size"),
        (None, [0, 0, 0], 10, "all 3 weights are 0"),
        (None, [1, 1, 1], -1, "a blend of -1 samples"),
        ([Numbers("a", 3), Numbers("b", 3, Split.test)], [1, 1], 4, "split train and .* of test"),
    ],
)
def test_refused_blends(datasets, weights, size, message):
    with pytest.raises(ValueError, match=message):
        blend(datasets, weights, size)


def test_refuses_datasets_of_several_classes():
    class Others(Numbers):
        pass

    with pytest.raises(ValueError, match="class Numbers and dataset 1 of Others; make a blend"):
        blend([Numbers("a", 3), Others("b", 3)], [1, 1], 4)


def test_oversampling_names_a_surplus_that_works():
    sizes = [91] + [2] * 100
    weights = [0.9] + [0.001] * 100
    datasets = [Numbers(f"data/{i}", n, num_samples=n) for i, n in enumerate(sizes)]
    with pytest.raises(IndexError) as caught:
        BlendedDataset(datasets, weights, 190, config())
    text = str(caught.value)
    assert "the train blend of 101 datasets, of 190 samples in all, draws 17" in text
    assert "samples of Numbers number 0 (data/0), which has 91." in text
    assert "mid_level_dataset_surplus from 0.005 to " in text
    surplus = float(text.split(" to ")[1].split(",")[0])
    enough = [int(np.ceil(target * (1 + surplus))) for target in [90] + [1] * 100]
    datasets = [Numbers(f"data/{i}", n, num_samples=n) for i, n in enumerate(enough)]
    dataset = BlendedDataset(datasets, weights, 190, config(mid_level_dataset_surplus=surplus))
    assert len(dataset) == 190


def test_an_undrawn_dataset_is_no_error():
    weights = [2**0.5, 1e-12, 3**0.5]
    dataset = blend(three(30, 0, 30), weights, 40)
    assert dataset.blend.counts()[1] == 0


def files_of(folder):
    return {path.name.split("-", 1)[1]: path for path in folder.iterdir()}


def test_cache(tmp_path):
    built = blend(path_to_cache=str(tmp_path))
    files = files_of(tmp_path)
    assert set(files) == {
        f"BlendedDataset-train-{name}"
        for name in (
            "description.txt",
            "dataset_index.npy",
            "dataset_sample_index.npy",
            "checksums.json",
            "arrays.pack",
        )
    }
    description = files["BlendedDataset-train-description.txt"].read_text()
    assert description == built.unique_description
    assert files["BlendedDataset-train-description.txt"].name.startswith(
        built.unique_description_hash
    )
    assert json.loads(description) == {
        "class": "BlendedDataset",
        "datasets": [{"class": "Numbers", "dataset_path": f"data/{name}"} for name in "abc"],
        "split": "train",
        "weights": [0.5, 0.3, 0.2],
        "size": 40,
    }
    stamps = {path: path.stat().st_mtime_ns for path in files.values()}
    for options in ({}, {"defer_npy_index_mmap": True}, {"fast_cache_load": True}):
        again = blend(path_to_cache=str(tmp_path), **options)
        assert len(again) == 40
        np.testing.assert_array_equal(again.dataset_index, built.dataset_index)
        np.testing.assert_array_equal(again.dataset_sample_index, built.dataset_sample_index)
    assert {path: path.stat().st_mtime_ns for path in files.values()} == stamps


def spoil(path, change):
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def zero_middle(data):
    data[140:160] = bytes(20)


def truncate(data):
    del data[-8:]


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("name", ["dataset_index.npy", "dataset_sample_index.npy"])
@pytest.mark.parametrize("damage", [zero_middle, truncate])
def test_a_damaged_cache_is_built_again(tmp_path, name, damage, recorded):
    built = blend(path_to_cache=str(tmp_path))
    right = built.dataset_index.tolist()
    files = files_of(tmp_path)
    if not recorded:  # as the reference leaves it
        files["BlendedDataset-train-checksums.json"].unlink()
    spoil(files[f"BlendedDataset-train-{name}"], damage)
    with pytest.warns(IndexCacheWarning, match="is damaged and is built again"):
        again = blend(path_to_cache=str(tmp_path))
    assert again.dataset_index.tolist() == right
    assert blend(path_to_cache=str(tmp_path)).dataset_index.tolist() == right


def test_oversampling_is_noticed_in_a_cached_blend(tmp_path):
    blend(path_to_cache=str(tmp_path))
    with pytest.raises(IndexError, match=r"draws 20 samples of Numbers number 0 .* which has 7"):
        blend(three(7, 30, 30), path_to_cache=str(tmp_path))


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(IndexCacheError, match=r"file.*path_to_cache"):
        blend(path_to_cache=str(tmp_path / "file"))


def test_a_trusted_cache_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="without fast_cache_load"):
        blend(path_to_cache=str(tmp_path), fast_cache_load=True)
    deferred = blend(path_to_cache=str(tmp_path), defer_npy_index_mmap=True)
    assert len(deferred) == 40
    assert list(tmp_path.iterdir()) == []
    assert deferred[0]["dataset_id"] == 0  # built by the first read


def test_pickles_without_arrays_that_are_cached(tmp_path):
    size = 20_000
    datasets = three(size, size, size)
    for part in datasets:
        part._data = None
    plain = blend(datasets, size=size)
    cached = blend(datasets, size=size, path_to_cache=str(tmp_path))
    assert len(pickle.dumps(plain)) > 10 * size
    data = pickle.dumps(cached)
    assert len(data) < 5000
    again = pickle.loads(data)
    assert len(again) == size
    np.testing.assert_array_equal(again.dataset_index, plain.dataset_index)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(plain)).dataset_index, plain.dataset_index
    )


def test_fingerprint_names_what_differs():
    one = blend().fingerprint()
    assert one == blend(three(30, 30, 30)).fingerprint()
    other = blend([Numbers("data/a", 30), Numbers("other", 30), Numbers("data/c", 30)])
    assert {key for key, value in other.fingerprint().items() if one[key] != value} == {
        "contents",
        "dataset_1",
    }
    assert blend(weights=(0.5, 0.2, 0.3)).fingerprint()["weights"] != one["weights"]
    parts = [Numbers("x", 1)] * 100
    many = BlendedDataset(parts, [1] * 100, None, config()).fingerprint()
    assert "dataset_0" not in many
    assert len(json.dumps(dict(many))) < 400


class Marked(GPTDataset):
    """A dataset that adds to what it is identified by."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.unique_identifiers["mark"] = len(self)


@pytest.mark.parametrize("kind", [GPTDataset, Marked])
def test_the_description_is_the_text_of_all_identifiers(tmp_path, kind):
    with IndexedDatasetBuilder(str(tmp_path / "data"), dtype=np.uint16) as out:
        out.add_documents(np.arange(100, dtype=np.uint16), np.array([60, 40]))
    settings = GPTDatasetConfig(
        random_seed=1, sequence_length=8, split="1,0,0", tokenizer=ByteTokenizer()
    )
    source = IndexedDataset(str(tmp_path / "data"))
    parts = [
        kind(source, str(tmp_path / "data"), np.arange(2), samples, Split.train, settings)
        for samples in (4, 6)
    ]
    built = BlendedDataset(parts, [0.5, 0.5], 6, settings)
    expected = json.dumps(
        built.unique_identifiers, indent=4, default=lambda value: value.unique_identifiers
    )
    assert built.unique_description == expected
