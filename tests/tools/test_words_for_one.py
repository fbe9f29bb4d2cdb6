"""Reports on the smallest data there is: one thing is not called by a plural."""

import json
import re

import pytest

from coredata.tools.main import main

TOKENS = ("--tokenizer-type", "ByteTokenizer")
RUN = ("--seq-length", "16", "--train-iters", "1", "--global-batch-size", "1", "--split", "1,0,0")
NO_PLURALS = re.compile(r"(?<![\d.,])1 (?!is\b|was\b)(?:[a-z-]+ )?[a-z-]*[a-z]s\b(?<!this)")


@pytest.fixture
def one(tmp_path, monkeypatch, capsys):
    """A token file of one document, made by the command; where it is, the working directory is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.jsonl").write_text(json.dumps({"text": "word " * 9}) + "\n")
    assert main(["preprocess", "--input", "one.jsonl", "--output-prefix", "one", *TOKENS]) == 0
    return capsys.readouterr().out


def check(out):
    assert not NO_PLURALS.search(out), NO_PLURALS.search(out).group()
    assert not re.search(r"(?<![\d.,])0(\.0)? MB", out)


def test_the_check_sees_a_plural():
    for text in ("1 files", "(1 shards)", "1 bad lines", "in 1 prefixes", "0.0 MB", "0 MB/s"):
        with pytest.raises(AssertionError):
            check(text)
    check("1 file, 11 files, 2.1 MB files, 1,001 files, 7.0 MB, 10 MB")


def test_preprocess(one):
    check(one)
    assert "read     1 file, 1 row, 58 B of text" in one
    assert "1 document (0 rows without tokens), 1 sequence, 45 tokens of uint16" in one
    assert "(1 shard)" in one


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("merge", "--input", "one_text_document", "--output-prefix", "two"), "merged 1 pair into"),
        (
            ("sequences", "--data-path", "one_text_document")
            + ("--per-dataset-sequences-path", "counts.json"),
            "1 prefix with 1 sequence: counts.json",
        ),
        (("verify", "one_text_document"), "uint16, 1 document, 1 sequence, 45 tokens"),
        (("inspect", "one_text_document"), "1 document, 1 sequence, 45 tokens of uint16"),
        (("doctor", "one_text_document"), "one_text_document: 1 sequence, header and sizes fit"),
        (("doctor", "--data-path", "one_text_document"), "needed for 1 prefix"),
        (
            ("prepare-cache", "--data-path", "one_text_document", *RUN, *TOKENS)
            + ("--data-cache-path", "cache", "--eval-iters", "0"),
            "sizes from 1 step of 1 sample, 1 a step, 1 data-parallel rank",
        ),
        (("inspect", "--data-path", "one_text_document", *RUN, *TOKENS), "from 1 dataset"),
        (("view", "--sample", "0", "--data-path", "one_text_document", *RUN, *TOKENS), "16 tokens"),
        (("trace", "--step", "0", "--data-path", "one_text_document", *RUN, *TOKENS), "1 sample"),
    ],
)
def test_reports(one, words, text, capsys):
    assert main(list(words)) in (0, 1)
    told = capsys.readouterr()
    check(told.out)
    check(told.err)
    assert text in told.out


def test_a_cache_with_one_file_set_aside(one, capsys, tmp_path):
    name = f"{'0' * 32}-GPTDataset-train-document_index.npy.damaged"
    (tmp_path / name).write_bytes(b"")
    assert main(["verify", "."]) == 0
    out = " ".join(capsys.readouterr().out.split())
    check(out)
    assert ". holds 1 file *.damaged of caches that a repair set aside; nothing uses" in out
