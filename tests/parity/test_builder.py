"""The reference's builder beside ours, on random corpora and settings; caches read both ways."""

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coredata.datasets import (
    BlendedDataset,
    BlendedMegatronDatasetBuilder,
    GPTDataset,
    GPTDatasetConfig,
)
from coredata.testing import random_corpus, write_corpus

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from megatron.core.datasets import blended_megatron_dataset_builder, gpt_dataset

Reference = blended_megatron_dataset_builder.BlendedMegatronDatasetBuilder


@dataclass
class Tokenizer:
    """What both sides ask of a tokenizer."""

    pad: int = 257
    eod: int = 256
    eos: int = 256
    vocab_size: int = 268

    @property
    def unique_identifiers(self):
        return {"class": "Tokenizer"}


@pytest.fixture(scope="module")
def prefixes(tmp_path_factory):
    """Files large enough that no split of them is empty: there the reference does not end."""
    folder = tmp_path_factory.mktemp("corpora")
    return [
        write_corpus(folder / name, random_corpus(i, documents=30 + 10 * i, longest=40))
        for i, name in enumerate("abc")
    ]


@pytest.fixture(scope="module")
def process_group():
    """With a cache, the reference asks for its rank even where there is one process."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


sizes = st.lists(st.integers(0, 150), min_size=3, max_size=3)


@st.composite
def blends(draw, files=3):
    """Numbers of files, and weights or none."""
    chosen = draw(st.lists(st.integers(0, files - 1), min_size=1, max_size=4))
    weights = st.lists(
        st.floats(0.1, 10) | st.integers(1, 5), min_size=len(chosen), max_size=len(chosen)
    )
    return chosen, draw(st.none() | weights)


@st.composite
def cases(draw):
    """Settings and sizes for which the reference gives a result."""
    asked = draw(sizes)
    options = {
        "random_seed": draw(st.integers(0, 2**32 - 1)),
        "sequence_length": draw(st.integers(2, 20)),
        "mid_level_dataset_surplus": draw(st.sampled_from([0.005, 0.5])),
    }
    if draw(st.booleans()):
        options["blend"] = draw(blends())
        options["split"] = draw(st.sampled_from(["80,10,10", "1,1,0", "1", "0.5/0.3/0.2"]))
        weighted = [options["blend"][1]] * 3
    else:
        per_split = [draw(blends()), *draw(st.lists(st.none() | blends(), min_size=2, max_size=2))]
        options["blend_per_split"] = per_split
        options["multiple_validation_sets"] = draw(st.booleans())
        weighted = [blend and blend[1] for blend in per_split]
    for i in range(3):
        if weighted[i] is None and draw(st.booleans()):
            asked[i] = None
    return options, asked


def named(blend, prefixes):
    return blend and ([prefixes[file] for file in blend[0]], blend[1])


def build(builder, config_class, dataset_class, case, prefixes, cache):
    options, asked = case
    options = dict(options, path_to_cache=cache)
    if "blend" in options:
        options["blend"] = named(options["blend"], prefixes)
    else:
        options["blend_per_split"] = [
            named(blend, prefixes) for blend in options["blend_per_split"]
        ]
    config = config_class(
        tokenizer=Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        **options,
    )
    try:
        return builder(dataset_class, asked, lambda: True, config).build()
    except IndexError as error:
        return error


def build_ours(*arguments):
    return build(BlendedMegatronDatasetBuilder, GPTDatasetConfig, GPTDataset, *arguments)


def build_theirs(*arguments):
    return build(Reference, gpt_dataset.GPTDatasetConfig, gpt_dataset.GPTDataset, *arguments)


def assert_same(ours, theirs):
    if theirs is None:
        assert ours is None
        return
    if isinstance(theirs, list):
        for mine, its in zip(ours, theirs, strict=True):
            assert_same(mine, its)
        return
    assert type(ours).__name__ == type(theirs).__name__
    assert len(ours) == len(theirs)
    assert ours.unique_description == theirs.unique_description
    if isinstance(ours, BlendedDataset):
        assert ours.weights == theirs.weights
        assert ours.size == theirs.size
        names = ("dataset_index", "dataset_sample_index")
        assert_same(ours.datasets, theirs.datasets)
    else:
        assert ours.num_samples == theirs.num_samples
        names = ("document_index", "sample_index", "shuffle_index", "indices")
    for name in names:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), strict=True)
    for k in {0, len(ours) // 2, len(ours) - 1} if len(ours) else ():
        mine, its = ours[k], theirs[k]
        assert mine.get("dataset_id") == its.get("dataset_id")
        for field in ("tokens", "labels", "loss_mask", "position_ids"):
            np.testing.assert_array_equal(mine[field], its[field].numpy())


def compare(ours, theirs):
    """The same datasets, or both refuse to draw more samples than there are."""
    assert isinstance(ours, IndexError) == isinstance(theirs, IndexError)
    if not isinstance(theirs, IndexError):
        assert_same(ours, theirs)


example = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.slow
@given(cases())
@example
def test_in_memory(prefixes, case):
    # The reference writes its cache beside the data, where ours would read it: hence copies.
    with tempfile.TemporaryDirectory() as folder:
        copies = [str(Path(folder) / Path(prefix).name) for prefix in prefixes]
        for prefix, copy in zip(prefixes, copies, strict=True):
            for end in (".bin", ".idx"):
                Path(copy + end).symlink_to(prefix + end)
        ours = build_ours(case, copies, None)
        compare(ours, build_theirs(case, copies, None))


def files_in(folder):
    """Name -> content; without what only we keep beside the reference's files."""
    return {
        path.name: path.read_bytes()
        for path in Path(folder).iterdir()
        if not path.name.endswith(("checksums.json", "arrays.pack"))
    }


def stamps_in(folder):
    return {path: path.stat().st_mtime_ns for path in Path(folder).iterdir()}


@pytest.mark.slow
@given(cases())
@example
def test_caches(prefixes, process_group, case):
    with tempfile.TemporaryDirectory() as mine, tempfile.TemporaryDirectory() as its:
        ours, theirs = build_ours(case, prefixes, mine), build_theirs(case, prefixes, its)
        compare(ours, theirs)
        if isinstance(theirs, IndexError):
            return
        assert files_in(mine) == files_in(its)
        before = stamps_in(mine), stamps_in(its)
        compare(build_ours(case, prefixes, its), build_theirs(case, prefixes, mine))
        assert (stamps_in(mine), stamps_in(its)) == before


@pytest.mark.parametrize(("surplus", "refused"), [(0.005, True), (1.0, False)])
def test_many_small_weights(prefixes, tmp_path, surplus, refused):
    copies = [str(tmp_path / Path(prefix).name) for prefix in prefixes]
    for prefix, copy in zip(prefixes, copies, strict=True):
        for end in (".bin", ".idx"):
            Path(copy + end).symlink_to(prefix + end)
    options = {
        "random_seed": 1,
        "sequence_length": 64,
        "mid_level_dataset_surplus": surplus,
        "blend": ([0] + [1] * 100, [0.9] + [0.001] * 100),
        "split": "1",
    }
    case = options, [100, 0, 0]
    ours, theirs = build_ours(case, copies, None), build_theirs(case, copies, None)
    assert isinstance(theirs, IndexError) == refused
    compare(ours, theirs)
