"""Caches that the reference's own classes prepared, found from command-line flags."""

import argparse
import json
import warnings
from typing import ClassVar

import numpy as np
import pytest

from coredata.datasets import blended_index
from coredata.datasets.gpt_index_plan import GPTIndexPlan
from coredata.datasets.index_cache import IndexCache
from coredata.testing import random_corpus, write_corpus
from coredata.tools.data_arguments import add_data_arguments, datasets_from_args
from coredata.tools.main import main

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from megatron.core.datasets import blended_megatron_dataset_builder, gpt_dataset


class Tokenizer:
    """What the reference's classes ask of a tokenizer."""

    eod = 256
    eos = 256
    pad = -1
    vocab_size = 257
    unique_identifiers: ClassVar = {"class": "Own", "tokenizer_path": ["a/b"]}


@pytest.fixture
def process_group():
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.fixture
def prepared(tmp_path, process_group):
    """Prefixes, the cache, and the reference's datasets."""
    prefixes = [
        write_corpus(tmp_path / name, random_corpus(i, documents=60, longest=40))
        for i, name in enumerate("ab")
    ]
    config = gpt_dataset.GPTDatasetConfig(
        random_seed=1234,
        sequence_length=16,
        blend=(prefixes, [0.25, 0.75]),
        split="8,1,1",
        path_to_cache=str(tmp_path / "cache"),
        tokenizer=Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
    )
    builder = blended_megatron_dataset_builder.BlendedMegatronDatasetBuilder(
        gpt_dataset.GPTDataset, [40, 12, 4], lambda: True, config
    )
    return prefixes, tmp_path / "cache", builder.build()


def test_a_start_builds_nothing(prepared, monkeypatch, capsys):
    prefixes, cache, theirs = prepared
    built = []
    monkeypatch.setattr(IndexCache, "store", lambda *a: built.append("store"))
    monkeypatch.setattr(GPTIndexPlan, "build", lambda *a: built.append("index"))
    monkeypatch.setattr(blended_index, "build_index", lambda *a: built.append("blend"))
    description = next(cache.glob("*-BlendedDataset-train-description.txt"))
    flags = ["--data-path", "0.25", prefixes[0], "0.75", prefixes[1], "--split", "8,1,1"]
    flags += ["--data-cache-path", str(cache), "--seq-length", "16", "--global-batch-size", "4"]
    flags += ["--train-iters", "10", "--eval-interval", "5", "--eval-iters", "1"]
    flags += ["--tokenizer-type", "NullTokenizer", "--vocab-size", "256"]
    for identifiers in (str(description), json.dumps(Tokenizer.unique_identifiers)):
        known = [*flags, "--tokenizer-identifiers", identifiers]
        assert main(["prepare-cache", *known, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["built"] == 0
        for more in (
            [],
            ["--dataloader-fast-cache-load"],
            ["--dataloader-fast-cache-load", "--dataloader-defer-npy-index-mmap"],
        ):
            parser = add_data_arguments(argparse.ArgumentParser())
            ours = datasets_from_args(parser.parse_args([*known, *more]))
            for one, other in zip(ours, theirs, strict=True):
                assert len(one) == len(other)
                for sample in range(len(one)):
                    np.testing.assert_array_equal(
                        one[sample]["tokens"], other[sample]["tokens"].numpy()
                    )
    assert built == []
