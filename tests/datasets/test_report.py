"""What a run reads, as data and as a table."""

import re

import numpy as np
import pytest

from coredata.datasets import (
    BlendedMegatronDatasetBuilder,
    BlendedMegatronDatasetConfig,
    GPTDataset,
    GPTDatasetConfig,
    MockGPTDataset,
    usage_report,
)
from coredata.datasets.report import DatasetReport, Report, SplitReport
from coredata.testing import write_corpus
from coredata.text import ByteTokenizer


@pytest.fixture(scope="module")
def prefixes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    a = [np.arange(10)] * 20 + [np.arange(0)] * 5  # 200 tokens, 5 documents without any
    b = [np.arange(25)] * 4  # 100 tokens
    return [write_corpus(folder / "a", a), write_corpus(folder / "b", b)]


def build(sizes, cls=GPTDataset, **options):
    given = {"random_seed": 7, "sequence_length": 8, "tokenizer": ByteTokenizer(), **options}
    return BlendedMegatronDatasetBuilder(cls, sizes, config=GPTDatasetConfig(**given)).build()


def test_a_blend(prefixes):
    report = usage_report(build([100, 0, 0], blend=(prefixes, [0.3, 0.7]), split="1,0,0"))
    (split,) = report.splits
    assert (split.name, split.samples) == ("train", 100)
    a, b = split.datasets
    # a: 31 samples asked need 249 tokens, 2 epochs: 400 tokens, 49 samples of 8 and 1 peeked.
    assert a == DatasetReport(
        path=prefixes[0],
        drawn=30,
        built=49,
        requested_share=0.3,
        achieved_share=0.3,
        documents=25,
        empty_documents=5,
        tokens=200,
        epochs=30 * 8 / 200,
        most_repeats=2,
        dropped_tokens=7,
    )
    assert a.undrawn == 19
    # b: 71 samples asked need 569 tokens, 6 epochs: 600 tokens, 74 samples.
    assert (b.built, b.drawn, b.most_repeats, b.epochs) == (74, 70, 6, 5.6)
    assert (b.dropped_tokens, b.undrawn) == (7, 4)


def test_lengths_as_weights(prefixes):
    (split,) = usage_report(build([None, 0, 0], blend=(prefixes, None), split="1,0,0")).splits
    lengths = [24, 12]
    assert [part.requested_share for part in split.datasets] == [24 / 36, 12 / 36]
    assert [part.drawn for part in split.datasets] == lengths
    assert [part.undrawn for part in split.datasets] == [0, 0]


def test_all_splits_and_lists(prefixes):
    blends = [(prefixes[:1], None), (prefixes, None), None]
    datasets = build([10, 4, 0], blend_per_split=blends, multiple_validation_sets=True)
    report = usage_report(datasets)
    assert [split.name for split in report.splits] == ["train", "valid 0", "valid 1"]
    (train,) = report.splits[0].datasets
    assert (train.requested_share, train.achieved_share) == (None, 1.0)
    assert (train.drawn, train.built) == (24, 24)


def test_without_samples(prefixes):
    report = usage_report(build([9, 0, 0], blend=(prefixes, [0.5, 0.5]), split="8,2,0"))
    assert [split.samples for split in report.splits] == [10, 0]
    for part in report.splits[1].datasets:
        assert (part.drawn, part.epochs, part.most_repeats, part.achieved_share) == (0, 0.0, 0, 0.0)


def test_the_table(prefixes):
    text = str(usage_report(build([100, 0, 0], blend=(prefixes, [0.3, 0.7]), split="1,0,0")))
    lines = text.splitlines()
    assert lines[0] == "train: 100 samples from 2 datasets"
    assert re.sub("  +", "|", lines[1]) == (
        "dataset|documents|tokens|samples|asked|achieved|epochs|repeats ≤|undrawn|dropped tokens"
    )
    assert set(lines[2]) == {"─"}
    assert re.sub("  +", "|", lines[3]) == f"{prefixes[0]}|25|200|30|30.00 %|30.00 %|1.20|2|19|7"
    assert len({len(line) for line in lines[1:]}) == 1


def test_mock_data():
    text = str(usage_report(build([1000, None, 0], MockGPTDataset)))
    assert "train: 8" in text
    assert "(made up)" in text
    assert "33,333" in text


class Rows:
    """A dataset that is not cut from a stream of tokens."""

    def __init__(self, source, path, indices, num_samples, index_split, config):
        self.indices = indices
        self.num_samples = num_samples
        self.index_split = index_split
        self.unique_identifiers = {"dataset_path": path}

    numel_low_level_dataset = staticmethod(len)

    @staticmethod
    def build_low_level_dataset(path, config):
        return range(10)

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return {"row": index}

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def get_batch(self, indices):
        return {"row": np.asarray(indices)}

    def fingerprint(self):
        return {}


def test_other_datasets():
    config = BlendedMegatronDatasetConfig(1, 8, blend=(["x", "y"], [1, 1e-5]), split="1,0,0")
    datasets = BlendedMegatronDatasetBuilder(Rows, [8, 0, 0], config=config).build()
    x, y = usage_report(datasets).splits[0].datasets
    assert (x.path, x.drawn, x.built, x.tokens, x.epochs) == ("x", 8, 10, None, None)
    assert (y.drawn, y.undrawn) == (1, 9)
    lines = str(usage_report(datasets)).splitlines()
    assert re.sub(" +", " ", lines[4]) == "y – – 1 0.00100 % 11.11 % – – 9 –"


def test_shares_keep_two_digits():
    part = DatasetReport("x", 1, 2, 1e-7, 0.0, *[None] * 6)
    text = str(Report((SplitReport("test", 1, (part,)),)))
    assert text.startswith("test: 1 samples from 1 dataset\n")
    assert " 0.000010 %    0.00 % " in text


def test_one_dataset_without_a_list(prefixes):
    train, valid, _ = build([9, 5, 0], blend=(prefixes, [0.5, 0.5]), split="5,5,0")
    assert usage_report(train) == usage_report([train])
    part = train.datasets[0]
    assert usage_report(part) == usage_report([part])
    both = usage_report([train, None, [valid]])
    assert [split.name for split in both.splits] == ["train", "valid 0"]


@pytest.mark.parametrize("given", [3, "train", {"train": 1}, [{"text": 1}], [[7]], iter("a")])
def test_what_is_no_dataset(given):
    told = r"usage_report is given '\w+', which is no dataset of a builder. Give it what Blended"
    with pytest.raises(TypeError, match=told):
        usage_report(given)
