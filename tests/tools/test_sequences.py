import json

import pytest

from coredata.formats import IndexedDataset
from coredata.tools.data_arguments import datasets_from_args
from coredata.tools.main import main

NULL = ("--tokenizer-type", "NullTokenizer", "--vocab-size", "1000")


def test_counts_that_the_builder_uses(write_pair, parse, tmp_path, capsys, monkeypatch):
    a, b = write_pair("a"), write_pair("b", 60)
    path = tmp_path / "counts.json"
    words = ["sequences", "--data-path", "1", a, "3", b, "--per-dataset-sequences-path", str(path)]
    assert main(words) == 0
    assert capsys.readouterr().out == f"2 prefixes with 100 sequences: {path}\n"
    assert json.loads(path.read_text()) == {a: [40, 41], b: [60, 61]}
    flags = ("--data-path", "1", a, "3", b, "--split", "1", "--seq-length", 16, *NULL)
    flags += ("--num-samples", 20, 0, 0, "--data-cache-path", tmp_path / "cache")
    expected = datasets_from_args(parse(*flags))[0][7]["tokens"].tolist()
    opened = []
    real = IndexedDataset._open
    monkeypatch.setattr(
        IndexedDataset, "_open", lambda self: [opened.append(self.path_prefix), real(self)][1]
    )
    fast = ("--dataloader-fast-cache-load", "--dataloader-defer-npy-index-mmap")
    train = datasets_from_args(parse(*flags, "--per-dataset-sequences-path", path, *fast))[0]
    assert set(opened) <= {a, b}
    assert train[7]["tokens"].tolist() == expected


def test_every_prefix_of_every_split_once(write_pair, tmp_path, capsys):
    a, b = write_pair("a"), write_pair("b")
    path = str(tmp_path / "counts.json")
    words = ["sequences", "--train-data-path", b, a, "--test-data-path", a]
    assert main([*words, "--per-dataset-sequences-path", path, "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == [b, a]


def test_a_pasted_script(write_pair, tmp_path, capsys):
    words = ["sequences", "--data-path", write_pair("a"), "--bf16", "--split", "1"]
    words += ["--per-dataset-sequences-path", str(tmp_path / "counts.json")]
    assert main(words) == 2
    assert "unknown: --bf16. To paste" in capsys.readouterr().err
    assert main([word for word in words if word != "--bf16"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*words, "--ignore-unknown-flags"]) == 0
    assert "passed over, as not about data: --bf16\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            "no data are named: give --data-path PREFIX, or instead of it --data-args-path, ",
        ),
        (["--data-path", "x", "--data-args-path", "y"], "exclude each other; leave one out"),
        (["--data-path", "x"], "there are no token files x.bin and x.idx"),
    ],
)
def test_refusals(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sequences", *words, "--per-dataset-sequences-path", "out.json"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_a_header_that_is_none(write_pair, tmp_path, capsys):
    prefix = write_pair("a")
    (tmp_path / "a.idx").write_bytes(b"not an index")
    words = ["sequences", "--data-path", prefix, "--per-dataset-sequences-path"]
    assert main([*words, str(tmp_path / "out.json")]) == 2
    assert "a.idx is not an index file" in capsys.readouterr().err
