"""Files of the reference's writer: read with the values that went in, written byte for byte."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from coredata.formats import IndexedDataset, IndexedDatasetBuilder, verify_indexed

GOLDEN = Path(str(files("coredata.testing") / "golden" / "indexed"))
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json"))


def case(name):
    return json.loads((GOLDEN / f"{name}.json").read_text())


def flat(lists):
    return [value for one in lists for value in one]


def sequences_of(settings):
    for tokens, lengths in zip(settings["documents"], settings["sequence_lengths"], strict=True):
        start = 0
        for length in lengths:
            yield tokens[start : start + length]
            start += length


def assert_same_bytes(prefix, name):
    for suffix in (".bin", ".idx"):
        assert prefix.with_suffix(suffix).read_bytes() == (GOLDEN / (name + suffix)).read_bytes()


def test_there_are_reference_files():
    assert len(NAMES) >= 7


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_read(name, mmap):
    settings = case(name)
    modes = settings["modes"]
    dataset = IndexedDataset(GOLDEN / name, multimodal=modes is not None, mmap=mmap)
    expected = list(sequences_of(settings))
    assert dataset.dtype == settings["dtype"]
    assert len(dataset) == len(expected)
    ends = np.cumsum([0, *(len(lengths) for lengths in settings["sequence_lengths"])])
    np.testing.assert_array_equal(dataset.document_indices, ends)
    for index, tokens in enumerate(expected):
        item = dataset[index]
        if modes is not None:
            item, mode = item
            assert mode == flat(modes)[index]
        assert item.dtype == settings["dtype"]
        np.testing.assert_array_equal(item, np.array(tokens, settings["dtype"]))


@pytest.mark.parametrize("way", ["documents", "items", "batch"])
@pytest.mark.parametrize("name", NAMES)
def test_bytes_are_written(tmp_path, name, way):
    settings = case(name)
    modes = settings["modes"]
    lengths = settings["sequence_lengths"]
    with IndexedDatasetBuilder(
        tmp_path / name, settings["dtype"], multimodal=modes is not None
    ) as builder:
        if way == "batch":
            builder.add_documents(
                np.array(flat(settings["documents"]), settings["dtype"]),
                np.array(flat(lengths), np.int32),
                np.array([len(one) for one in lengths], np.int64),
                None if modes is None else np.array(flat(modes), np.int64),
            )
        else:
            for index, tokens in enumerate(settings["documents"]):
                own = None if modes is None else modes[index]
                if way == "documents":
                    builder.add_document(tokens, lengths[index], own)
                else:
                    ends = np.cumsum(lengths[index])
                    pieces = np.split(np.array(tokens, np.int64), ends[:-1])
                    for piece, mode in zip(pieces, own or [0] * len(pieces), strict=True):
                        builder.add_item(piece, mode)
                    builder.end_document()
        builder.finalize()
    assert_same_bytes(tmp_path / name, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_through_add_index_is_the_same(tmp_path, name):
    settings = case(name)
    multimodal = settings["modes"] is not None
    with IndexedDatasetBuilder(tmp_path / name, settings["dtype"], multimodal) as builder:
        builder.add_index(GOLDEN / name)
        builder.finalize()
    assert_same_bytes(tmp_path / name, name)


@pytest.mark.parametrize("name", NAMES)
def test_they_verify(name):
    settings = case(name)
    verified = verify_indexed(GOLDEN / name, vocab_size=268)
    assert verified.tokens == sum(len(tokens) for tokens in settings["documents"])
    assert verified.documents == len(settings["documents"])
    assert verified.multimodal == (settings["modes"] is not None)
