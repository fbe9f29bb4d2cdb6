"""From a configuration and three sizes to datasets."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from coredata.datasets import (
    BlendedDataset,
    BlendedMegatronDatasetBuilder,
    BlendedMegatronDatasetConfig,
    EmptySplitError,
    GPTDataset,
    GPTDatasetConfig,
    MockGPTDataset,
    SingleProcess,
)
from coredata.indices import Split
from coredata.testing import random_corpus, write_corpus
from coredata.text import ByteTokenizer


@pytest.fixture(scope="module")
def prefixes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    counts = {"a": 60, "b": 35, "c": 90, "small": 5}
    return {
        name: write_corpus(folder / name, random_corpus(i, documents=count, longest=40))
        for i, (name, count) in enumerate(counts.items())
    }


def config(**options):
    given = {"random_seed": 7, "sequence_length": 16, "tokenizer": ByteTokenizer(), **options}
    return GPTDatasetConfig(**given)


def build(sizes, **options):
    return BlendedMegatronDatasetBuilder(GPTDataset, sizes, config=config(**options)).build()


def three(prefixes):
    return [prefixes[name] for name in "abc"]


def test_one_file(prefixes):
    train, valid, test = build([200, None, 0], blend=([prefixes["a"]], None), split="80,10,10")
    assert [type(one) for one in (train, valid, test)] == [GPTDataset] * 3
    assert [one.num_samples for one in (train, valid, test)] == [200, None, 0]
    assert [one.index_split for one in (train, valid, test)] == list(Split)
    assert [one.indices.tolist() for one in (train, valid, test)] == [
        list(range(48)),
        list(range(48, 54)),
        list(range(54, 60)),
    ]
    assert len(train) >= 200
    assert train.dataset is valid.dataset  # the file is opened once


def test_weights_and_sizes(prefixes):
    blend = (three(prefixes), [5, 3, 2])
    train, valid, test = build([120, 12, 9], blend=blend, split="80,20,0")
    assert test is None
    assert (len(train), len(valid)) == (120, 13)
    assert train.weights == [0.5, 0.3, 0.2]
    assert [part.num_samples for part in train.datasets] == [61, 37, 25]
    assert [part.dataset_path for part in train.datasets] == three(prefixes)


@pytest.mark.parametrize("request_", [40, 10_000, None, 0])
def test_no_weights(prefixes, request_):
    train, *_ = build([request_, 0, 0], blend=(three(prefixes), None), split="1,0,0")
    lengths = [len(part) for part in train.datasets]
    assert [part.num_samples for part in train.datasets] == [None] * 3
    total = sum(lengths)
    assert len(train) == (total if request_ is None else min(request_, total))
    if request_ is None or request_ > total:
        assert train.blend.counts().tolist() == lengths
    assert train.weights == (
        lengths if request_ is None else [length / total for length in lengths]
    )


def test_blend_per_split(prefixes):
    blends = [([prefixes["a"], prefixes["b"]], [3, 1]), ([prefixes["c"]], [0.25]), None]
    train, valid, test = build([80, 10, 5], blend_per_split=blends)
    assert isinstance(train, BlendedDataset)
    assert [part.indices.size for part in train.datasets] == [60, 35]  # files are used whole
    assert type(valid) is GPTDataset  # one file, whatever its weight
    assert valid.num_samples == 10
    assert valid.index_split is Split.valid
    assert test is None


def test_several_validation_sets(prefixes):
    blends = [([prefixes["a"]], None), (three(prefixes), None), None]
    options = {"blend_per_split": blends, "multiple_validation_sets": True}
    _, valid, _ = build([20, 7, 0], **options)
    assert [part.num_samples for part in valid] == [7, 7, 7]
    assert [part.dataset_path for part in valid] == three(prefixes)
    _, valid, _ = build([20, 7, 0], **options, full_validation=True)
    assert [part.num_samples for part in valid] == [None] * 3
    _, valid, _ = build(
        [20, 7, 0],
        blend=(three(prefixes), [1, 1, 1]),
        split="80,20,0",
        multiple_validation_sets=True,
    )
    assert [part.num_samples for part in valid] == [7, 7, 7]


def test_full_validation(prefixes):
    blend = (three(prefixes), None)
    train, valid, _ = build([20, 3, 0], blend=blend, split="80,20,0", full_validation=True)
    assert len(train) == 20
    assert len(valid) == sum(len(part) for part in valid.datasets) > 3
    with pytest.raises(ValueError, match=r"no size, because full_validation takes .*=False$"):
        build([20, 3, 0], blend=(three(prefixes), [1, 1, 1]), split="8,2,0", full_validation=True)


def test_mock_data():
    builder = BlendedMegatronDatasetBuilder(MockGPTDataset, [20, 5, None], config=config())
    train, valid, test = builder.build()
    assert [type(one) for one in (train, valid, test)] == [MockGPTDataset] * 3
    assert [one.num_samples for one in (train, valid, test)] == [20, 5, None]
    assert len(train.indices) == 33_333
    with pytest.raises(ValueError, match=r"GPTDataset reads files, .* or build MockGPTDataset"):
        BlendedMegatronDatasetBuilder(GPTDataset, [20, 5, 0], config=config())


def test_threads_give_the_same(prefixes):
    blend = (three(prefixes), [5, 3, 2])
    one = build([50, 10, 10], blend=blend, split="8,1,1")
    many = build([50, 10, 10], blend=blend, split="8,1,1", num_dataset_builder_threads=8)
    for mine, theirs in zip(one, many, strict=True):
        rows = np.arange(len(mine))
        np.testing.assert_array_equal(
            mine.get_batch(rows)["tokens"], theirs.get_batch(rows)["tokens"]
        )


class Lines:
    """A dataset class of one's own: rows of text, with the small protocol only."""

    threads = None
    failing = None

    def __init__(self, source, path, indices, num_samples, index_split, config):
        self.rows = [source[i] for i in indices]
        self.num_samples = num_samples
        self.index_split = index_split
        self.unique_identifiers = {"class": "Lines", "dataset_path": path, "n": num_samples}

    @staticmethod
    def numel_low_level_dataset(source):
        return len(source)

    @staticmethod
    def build_low_level_dataset(path, config):
        if Lines.threads is not None:
            Lines.threads.wait()  # all files are being opened at once, or this fails
        if path == Lines.failing:
            raise OSError(f"{path} is on fire")
        return [f"{path} {i}" for i in range(10)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"text": self.rows[index or 0]}

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def get_batch(self, indices):
        return {"text": np.array([self.rows[index] for index in indices])}

    def fingerprint(self):
        return dict(self.unique_identifiers)


def build_lines(sizes, **options):
    given = BlendedMegatronDatasetConfig(random_seed=1, sequence_length=1, **options)
    return BlendedMegatronDatasetBuilder(Lines, sizes, config=given).build()


def test_any_dataset_class():
    train, valid, _ = build_lines([8, 2, 0], blend=(["x", "y"], [0.75, 0.25]), split="80,20,0")
    assert [item["text"] for item in train.__getitems__(range(8))] == [
        f"{'xy'[dataset]} {sample}"
        for dataset, sample in zip(train.dataset_index, train.dataset_sample_index, strict=True)
    ]
    assert train.blend.counts().tolist() == [6, 2]
    assert valid[0] == {"dataset_id": 0, "text": "x 8"}


def test_files_are_worked_on_at_once(monkeypatch):
    monkeypatch.setattr(Lines, "threads", threading.Barrier(3, timeout=10))
    options = {"blend": (["x", "y", "z"], None), "split": "1,0,0"}
    (train, *_) = build_lines([6, 0, 0], **options, num_dataset_builder_threads=3)
    assert train[1]["text"] == "y 0"


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_of_the_class_pass_through(monkeypatch, threads):
    monkeypatch.setattr(Lines, "failing", "y")
    options = {"blend": (["x", "y", "z"], None), "split": "1,0,0"}
    with pytest.raises(OSError, match="y is on fire"):
        build_lines([6, 0, 0], **options, num_dataset_builder_threads=threads)


def test_empty_splits(prefixes):
    small = prefixes["small"]
    with pytest.raises(
        EmptySplitError,
        match=rf"3 samples are asked of the valid split of {small}, which is empty: 5 elements, of"
        r" which the shares 0\.969 to 0\.999 \(split '969,30,1'\) are those from 5 up to, not"
        r" including, 5\. Give",
    ):
        build([10, 3, 0], blend=([small], None), split="969,30,1")
    blend = ([prefixes["a"], small], [0.9, 0.1])
    with pytest.raises(EmptySplitError, match=f"asked of the valid split of {small}"):
        build([10, 3, 0], blend=blend, split="969,30,1")
    train, valid, test = build([10, 0, None], blend=([small], None), split="969,30,1")
    assert (len(train) >= 10, len(valid), len(test)) == (True, 0, 0)


def test_empty_splits_of_blends_without_weights(prefixes):
    small = prefixes["small"]
    _, valid, _ = build([10, 2, 0], blend=([prefixes["a"], small], None), split="8,1,0")
    assert valid.blend.counts().tolist() == [2, 0]
    assert valid.weights == [1.0, 0.0]
    _, valid, test = build([10, 0, None], blend=([small, small], None), split="969,30,1")
    assert (len(valid), len(test)) == (0, 0)
    with pytest.raises(ValueError, match="2 samples are asked of the valid split, but none of its"):
        build([10, 2, 0], blend=([small, small], None), split="969,30,1")


def test_a_weight_of_zero(prefixes):
    blend = ([prefixes["small"], prefixes["a"]], [0, 1])
    _, valid, _ = build([10, 3, 0], blend=blend, split="969,30,1")
    assert valid.blend.counts().tolist() == [0, 3]


def test_oversampling_by_many_small_weights(prefixes):
    blend = ([prefixes["a"]] + [prefixes["small"]] * 100, [0.9] + [0.001] * 100)
    options = {"blend": blend, "split": "1,0,0", "sequence_length": 64}
    with pytest.raises(
        IndexError, match=r"of 190 samples in all, draws 17\d samples of GPTDataset"
    ):
        build([100, 0, 0], **options)
    train, *_ = build([100, 0, 0], **options, mid_level_dataset_surplus=1.0)
    assert len(train) == 190


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([10, 10], {}, r"sizes: got 2, need 3: .* \[1000, 10, 0\]"),
        ([10, -3, 0], {}, "-3 samples are asked of the valid split"),
        ([10, None, 0], {}, r"valid split has weights \(0\.5, 0\.5\) but no size: .* such as 1000"),
    ],
)
def test_refused_sizes(sizes, options, message):
    given = config(blend=(["a", "b"], [0.5, 0.5]), split="8,1,1", **options)
    with pytest.raises(ValueError, match=message):
        BlendedMegatronDatasetBuilder(GPTDataset, sizes, config=given)


def test_a_split_without_a_share_needs_no_size():
    given = config(blend=(["a", "b"], [0.5, 0.5]), split="9,1,0")
    assert BlendedMegatronDatasetBuilder(GPTDataset, [10, 1, None], config=given).plans[2] is None


def test_no_configuration():
    with pytest.raises(TypeError, match="config: got None"):
        BlendedMegatronDatasetBuilder(GPTDataset, [1, 1, 1])


def test_where_nothing_is_built():
    given = config(blend=(["not", "there"], None), split="9,1,0")
    sizes = [10, 1, 0]
    call = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: False, given)
    assert call.build() == [None] * 3
    ranks = SingleProcess(builds=False)
    call = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, given, ranks=ranks)
    assert call.build() == [None] * 3
    with pytest.raises(FileNotFoundError, match="not"):
        BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, given).build()


def test_the_constructor_opens_nothing():
    given = config(blend=(["not", "there"], [1, 1]), split="9,1,0", path_to_cache="nowhere")
    builder = BlendedMegatronDatasetBuilder(GPTDataset, [10, 1, 0], config=given)
    assert [part.num_samples for part in builder.plans[0].parts] == [6, 6]


BUILD_FIRST_OF_ALL = """
import sys
import slow_extension
from numba.core import event
from coredata.datasets import BlendedMegatronDatasetBuilder, GPTDataset, GPTDatasetConfig
from coredata.text import ByteTokenizer
compiled = []
class Watch(event.Listener):
    def on_start(self, event): compiled.append(bool(slow_extension.registering))
    def on_end(self, event): pass
event.register("numba:compile", Watch())
config = GPTDatasetConfig(
    7, 16, tokenizer=ByteTokenizer(), blend=(sys.argv[1:], None), split="1,0,0",
    num_dataset_builder_threads=4,
)
train, _, _ = BlendedMegatronDatasetBuilder(GPTDataset, [50, 0, 0], config=config).build()
print(len(train), len(compiled), sum(compiled))
"""


@pytest.mark.slow
def test_threads_are_the_first_to_compile(prefixes, install_slow_extension, tmp_path):
    install_slow_extension(tmp_path)
    where = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", BUILD_FIRST_OF_ALL, *prefixes.values()],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    samples, compiled, early = map(int, done.stdout.split())
    assert samples == 50
    assert compiled > 0
    assert early == 0
