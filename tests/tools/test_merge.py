import argparse
import contextlib
import json
import re

import numpy as np
import pytest

from coredata.formats import IndexedDataset, IndexedDatasetBuilder, verify_block_checksums
from coredata.tools import merge as command
from coredata.tools import output


def run(*flags) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(flag) for flag in flags]))


def write(prefix, documents, dtype=np.uint16, modes=None):
    with IndexedDatasetBuilder(str(prefix), dtype, multimodal=modes is not None) as builder:
        for number, document in enumerate(documents):
            builder.add_item(document, mode=0 if modes is None else modes[number])
            builder.end_document()
        builder.finalize()


def test_a_directory_in_the_order_of_names(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "b", [[3]])
    write(tmp_path / "in" / "a", [[1, 2], []])
    write(tmp_path / "in" / "c", [])
    (tmp_path / "in" / "notes.txt").touch()
    assert run("--input", tmp_path / "in", "--output-prefix", tmp_path / "out") == 0
    merged = IndexedDataset(str(tmp_path / "out"))
    assert [merged[i].tolist() for i in range(len(merged))] == [[1, 2], [], [3]]
    assert merged.document_indices.tolist() == [0, 1, 2, 3]
    told = "merged 3 pairs into .*out.bin/.idx: 3 documents, 3 sequences, 3 tokens\n"
    assert re.fullmatch(told, capsys.readouterr().out)


def test_prefixes_in_the_order_given(tmp_path):
    write(tmp_path / "a", [[1]])
    write(tmp_path / "b", [[2]])
    run("--input", tmp_path / "b", tmp_path / "a", "--output-prefix", tmp_path / "out")
    assert IndexedDataset(str(tmp_path / "out"))[0].tolist() == [2]


def test_checksums(tmp_path):
    write(tmp_path / "a", [[1]])
    run("--input", tmp_path / "a", "--output-prefix", tmp_path / "out")
    assert not (tmp_path / "out.crc").exists()
    run("--input", tmp_path / "a", "--output-prefix", tmp_path / "out", "--write-checksums")
    assert verify_block_checksums(tmp_path / "out").size == 2


def test_dtypes(tmp_path):
    write(tmp_path / "a", [[1]], np.uint16)
    write(tmp_path / "b", [[2]], np.int32)
    flags = ("--input", tmp_path / "a", tmp_path / "b", "--output-prefix", tmp_path / "out")
    with pytest.raises(ValueError, match="widen"):
        run(*flags)
    assert run(*flags, "--widen") == 0
    assert IndexedDataset(str(tmp_path / "out")).dtype == np.int32


def test_multimodal(tmp_path):
    write(tmp_path / "a", [[1], [2]], modes=[0, 1])
    flags = ("--input", tmp_path / "a", "--output-prefix", tmp_path / "out")
    assert run(*flags, "--multimodal") == 0
    merged = IndexedDataset(str(tmp_path / "out"), multimodal=True)
    assert merged.sequence_modes.tolist() == [0, 1]
    write(tmp_path / "a", [[1]])
    with pytest.raises(ValueError, match=r"a has no modes, but --multimodal is given"):
        run(*flags, "--multimodal")


def test_half_a_pair(tmp_path):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a", [[1]])
    (tmp_path / "in" / "b.bin").touch()
    flags = ("--input", tmp_path / "in", "--output-prefix", tmp_path / "out")
    with pytest.raises(ValueError, match=r"b.idx is missing beside its other half"):
        run(*flags)
    (tmp_path / "in" / "b.bin").rename(tmp_path / "in" / "b.idx")
    with pytest.raises(ValueError, match=r"b.bin is missing beside its other half"):
        run(*flags)


def test_nothing_to_merge(tmp_path):
    (tmp_path / "in").mkdir()
    with pytest.raises((ValueError, OSError), match=r"holds no .bin/.idx pairs|no file matches"):
        run("--input", tmp_path / "in", "--output-prefix", tmp_path / "out")
    (tmp_path / "in" / "x.txt").touch()
    with pytest.raises(ValueError, match=r"holds no .bin/.idx pairs; name pref"):
        run("--input", tmp_path / "in", "--output-prefix", tmp_path / "out")


def test_json(tmp_path, capsys):
    write(tmp_path / "a", [[1], [2]])
    assert run("--input", tmp_path / "a", "--output-prefix", tmp_path / "out", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["documents"], told["tokens"], told["dtype"]) == (2, 2, "uint16")
    assert told["inputs"] == [str(tmp_path / "a")]


def test_progress_of_what_takes_long(tmp_path, capsys, monkeypatch):
    write(tmp_path / "a", [[1], [2]])
    looks = []

    @contextlib.contextmanager
    def shown(look):
        looks.append(look())
        yield
        looks.append(look())

    monkeypatch.setattr(output, "progress", shown)
    run("--input", tmp_path / "a", "--output-prefix", tmp_path / "out")
    assert looks == ["reading indices", "verifying"]


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("", "--output-prefix is empty; give the path that files begin with, as out/a"),
        ("out/", "ends in a slash and names no file; give a name in that directory, such as out/"),
        ("my out.bin", "a prefix is a path without .bin and .idx; use 'my out'"),
        ("out.idx", "a prefix is a path without .bin and .idx; use out"),
    ],
)
def test_prefixes_that_name_no_pair(prefix, message, tmp_path):
    write(tmp_path / "a", [[1]])
    with pytest.raises(ValueError, match=re.escape(message)):
        run("--input", tmp_path / "a", "--output-prefix", prefix)
