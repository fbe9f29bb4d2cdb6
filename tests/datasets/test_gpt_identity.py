"""Fingerprints: equal for the same order of the same data, and saying what differs."""

import json
import os
import pickle
from typing import ClassVar

import numpy as np
import pytest

from coredata.datasets import ArraySource, BlendedDataset, GPTDataset, GPTDatasetConfig
from coredata.indices import Split
from coredata.loading import BatchLoader, StateMismatchError
from coredata.sampling import MegatronPretrainingSampler
from coredata.text import ByteTokenizer


def config(**options):
    return GPTDatasetConfig(
        **{
            "random_seed": 1234,
            "sequence_length": 8,
            "blend": (["corpus"], None),
            "split": "1",
            "tokenizer": ByteTokenizer(),
            **options,
        }
    )


def dataset(documents, num_samples=None, split=Split.train, **options):
    """`documents`: lists of tokens."""
    lengths = np.array([len(document) for document in documents], np.int32)
    flat = np.array([token for document in documents for token in document], np.int64)
    return GPTDataset(
        ArraySource(flat, lengths),
        None,
        np.arange(len(documents), dtype=np.int32),
        num_samples,
        split,
        config(**options),
    )


def test_fingerprint_is_small_and_flat():
    fingerprint = dataset([range(100)], num_samples=5).fingerprint()
    assert all(isinstance(value, str | int | float | None) for value in fingerprint.values())
    assert len(pickle.dumps(fingerprint)) < 1000


def test_fingerprint_knows_no_place(prefix, from_file, tmp_path):
    before = from_file(prefix).fingerprint()
    other = tmp_path / "elsewhere"
    other.mkdir()
    name = os.path.basename(prefix)
    for suffix in (".bin", ".idx"):
        os.rename(f"{prefix}{suffix}", other / f"{name}{suffix}")
    assert from_file(str(other / name), cache=str(tmp_path / "c")).fingerprint() == before


@pytest.mark.parametrize(
    ("options", "differs"),
    [
        ({"random_seed": 5}, ["random_seed"]),
        ({"num_samples": 9}, ["num_samples"]),
        ({"sequence_length": 9}, ["samples", "sequence_length"]),
        ({"split": Split.test}, ["split"]),
        ({"add_extra_token_to_sequence": False}, ["add_extra_token_to_sequence", "samples"]),
        ({"separate_final_epoch_threshold": 0.5}, ["separate_final_epoch_threshold"]),
        ({"documents": [[1] * 91, [3]]}, ["documents", "source"]),
        ({"eod_mask_loss": True, "output_dtype": "int32", "segment_ids": True}, []),
    ],
)
def test_fingerprint_names_what_differs(options, differs):
    base = dataset([[1] * 96], num_samples=8).fingerprint()
    given = {"documents": [[1] * 96], "num_samples": 8, **options}
    other = dataset(given.pop("documents"), **given).fingerprint()
    names = {key for key in base.keys() | other.keys() if base.get(key) != other.get(key)}
    names = {name.partition("_")[0] if name.startswith("source") else name for name in names}
    assert sorted(names) == differs


class Ids:
    """A tokenizer with these ids."""

    unique_identifiers: ClassVar[dict] = {"class": "Ids"}
    vocab_size = 100

    def __init__(self, eod, pad):
        self.eod, self.eos, self.pad = eod, eod, pad


def with_ids(eod, pad):
    part = dataset([[1] * 96], num_samples=8, tokenizer=Ids(eod, pad))
    return part, BlendedDataset([part, part], [0.5, 0.5], 8, part.config)


def loader(data):
    return BatchLoader(data, MegatronPretrainingSampler(len(data), 0, 2, 0, 1), prefetch=0)


def test_other_end_and_pad_ids_are_refused_and_old_states_taken():
    for number in range(2):
        one, pad, eod = (with_ids(*ids)[number] for ids in ((0, 99), (0, 5), (7, 99)))
        assert one.fingerprint()["special_ids"] == "eod 0, pad 99"
        state = loader(one).state_dict()
        for other, ids in ((pad, "eod 0, pad 5"), (eod, "eod 7, pad 99")):
            text = f'special_ids: the state has "eod 0, pad 99", this loader has "{ids}"\nLoad'
            with pytest.raises(StateMismatchError, match=text):
                loader(other).load_state_dict(state)
            old = json.loads(json.dumps(state))
            del old["fingerprint"]["special_ids"]  # as before ids were in it
            loader(other).load_state_dict(old)
            differences = {k for k, v in other.fingerprint().items() if v != one.fingerprint()[k]}
            assert differences == {"special_ids"}  # no digest has them


def test_fingerprint_of_chosen_documents(prefix, from_file):
    chosen = [np.array([0, 2, 1, 3], np.int32), np.array([0, 1, 2], np.int64), np.arange(1, 4)]
    found = [from_file(prefix, documents).fingerprint()["documents"] for documents in chosen]
    assert found[1:] == ["0:3", "1:4"]
    assert found[0].startswith("4 documents, ")
