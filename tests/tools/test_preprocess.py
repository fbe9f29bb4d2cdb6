import argparse
import json

import pytest

from coredata.formats import IndexedDataset, verify_block_checksums
from coredata.preprocess import PreprocessError
from coredata.text import demo_tokenizer
from coredata.tools import preprocess as command
from coredata.tools.main import main


def run(*flags) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(flag) for flag in flags]))


@pytest.fixture
def corpus(tmp_path):
    rows = [{"text": "One. Two.", "n": "5 6"}, {"text": "", "n": "7"}]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_reference_flags(corpus, tmp_path, capsys):
    code = run(
        *("--input", corpus, "--output-prefix", tmp_path / "out", "--json-keys", "text", "n"),
        *("--append-eod", "--tokenizer-type", "ByteTokenizer", "--workers", 1),
        *("--partitions", 4, "--keep-sequential-samples", "--log-interval", 1000),
    )
    assert code == 0
    out, err = capsys.readouterr()
    assert "2 documents (1 row without tokens), 1 sequence, 10 tokens of uint16" in out
    assert f"{tmp_path / 'out'}_n_document.bin/.idx: 2 documents" in out
    assert "--partitions is not needed" in err
    assert "--keep-sequential-samples is not needed" in err
    assert IndexedDataset(f"{tmp_path / 'out'}_text_document")[0].tolist() == [*b"One. Two.", 256]


def test_sentences(corpus, tmp_path):
    flags = ("--input", corpus, "--output-prefix", tmp_path / "out", "--split-sentences")
    run(*flags, "--lang", "english", "--tokenizer-type", "ByteTokenizer")
    source = IndexedDataset(f"{tmp_path / 'out'}_text_sentence")
    assert [bytes(source[i].tolist()) for i in range(len(source))] == [b"One.", b"Two."]
    run(*flags, "--keep-newlines", "--tokenizer-type", "ByteTokenizer")
    source = IndexedDataset(f"{tmp_path / 'out'}_text_sentence")
    assert [bytes(source[i].tolist()) for i in range(len(source))] == [b"One. ", b"Two."]


def test_checksums(corpus, tmp_path):
    flags = ("--input", corpus, "--tokenizer-type", "ByteTokenizer", "--write-checksums")
    run(*flags, "--output-prefix", tmp_path / "out")
    assert verify_block_checksums(tmp_path / "out_text_document").size == 18


def test_keep_newlines_alone_is_remarked_on(corpus, tmp_path, capsys):
    flags = ("--input", corpus, "--output-prefix", tmp_path / "out", "--keep-newlines")
    assert run(*flags, "--tokenizer-type", "ByteTokenizer") == 0
    assert "--keep-newlines does nothing without --split-sentences" in capsys.readouterr().err


def test_null_tokenizer_and_drop_empty(corpus, tmp_path):
    flags = ("--input", corpus, "--output-prefix", tmp_path / "out", "--json-keys", "n")
    assert run(*flags, "--tokenizer-type", "NullTokenizer", "--vocab-size", 70000) == 0
    source = IndexedDataset(f"{tmp_path / 'out'}_n_document")
    assert source.dtype == "int32"
    assert source[0].tolist() == [5, 6]
    flags = ("--input", corpus, "--output-prefix", tmp_path / "out", "--drop-empty")
    assert run(*flags, "--tokenizer-type", "ByteTokenizer") == 0
    assert IndexedDataset(f"{tmp_path / 'out'}_text_document").document_indices.tolist() == [0, 1]


def test_error_budget(corpus, tmp_path, capsys):
    corpus.write_text('{"text": "a"}\nbad\n')
    flags = ("--input", corpus, "--output-prefix", tmp_path / "out")
    flags = (*flags, "--tokenizer-type", "ByteTokenizer")
    with pytest.raises(PreprocessError, match=r"in.jsonl, line 2, byte 14: not JSON"):
        run(*flags)
    report = tmp_path / "report.jsonl"
    assert run(*flags, "--max-errors", 1, "--error-report", report) == 0
    assert f"1 bad line, listed in {report}" in capsys.readouterr().out
    assert json.loads(report.read_text())["line"] == 2


def test_nothing_written(corpus, tmp_path):
    corpus.write_text('{"text": ""}\n')
    with pytest.raises(PreprocessError, match="no token was written"):
        run(
            *("--input", corpus, "--output-prefix", tmp_path / "out"),
            *("--tokenizer-type", "ByteTokenizer"),
        )


def test_exit_codes_of_the_whole_command(corpus, tmp_path, capsys):
    flags = ["preprocess", "--input", str(corpus), "--output-prefix", str(tmp_path / "out")]
    flags += ["--tokenizer-type", "ByteTokenizer"]
    assert main(flags) == 0
    corpus.write_text('{"text": ""}\n')
    assert main(flags) == 2
    assert "coredata preprocess: no token was written" in capsys.readouterr().err
    corpus.write_text("bad\n")
    assert main(flags) == 2
    assert "in.jsonl, line 1, byte 0: not JSON" in capsys.readouterr().err


def test_tokenizer_files_and_end_token_by_name(corpus, tmp_path):
    from importlib.resources import as_file, files

    tokenizer = demo_tokenizer()
    found = [path for path in files("coredata.text").joinpath("assets").iterdir()]
    (asset,) = [path for path in found if path.name.endswith("tokenizer.json")]
    with as_file(asset) as path:
        run(
            *("--input", corpus, "--output-prefix", tmp_path / "out", "--append-eod"),
            *("--tokenizer-model", path, "--eod", "<|endoftext|>", "--shard-size", 1),
        )
    source = IndexedDataset(f"{tmp_path / 'out'}_text_document")
    end = tokenizer.token_id("<|endoftext|>")
    assert source[0].tolist() == [*tokenizer.encode("One. Two."), end]


def test_json(tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text('{"text": "words"}\n')
    words = ["--input", str(tmp_path / "in.jsonl"), "--output-prefix", str(tmp_path / "out")]
    assert main(["preprocess", *words, "--tokenizer-type", "ByteTokenizer", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["keys"]["text"]["tokens"] == 5
    assert told["rows"]["lines"] == 1


def test_failures_name_what_is_left(tmp_path, capsys):
    kind = ["--tokenizer-type", "ByteTokenizer"]
    (tmp_path / "bad.jsonl").write_text("no JSON\n")
    (tmp_path / "good.jsonl").write_text('{"text": "a"}\n')
    out = str(tmp_path / "out")
    good, bad = str(tmp_path / "good.jsonl"), str(tmp_path / "bad.jsonl")
    assert main(["preprocess", "--input", bad, "--output-prefix", out, *kind]) == 2
    assert ".parts" not in capsys.readouterr().err
    assert not (tmp_path / "out.parts").exists()
    assert main(["preprocess", "--input", good, bad, "--output-prefix", out, *kind]) == 2
    told = capsys.readouterr().err
    assert f"{out}.parts keeps what is finished: the same command goes on from there" in told


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("http://127.0.0.1:9/x", "http:// cannot be written; give a local path"),
        ("nowhere/x", "there is no directory nowhere; create it first: mkdir -p nowhere"),
        ("no where/x", "there is no directory no where; create it first: mkdir -p 'no where'"),
        ("", "--output-prefix is empty; give the path that files begin with"),
    ],
)
def test_places_that_cannot_be_written(prefix, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n')
    words = ["--input", "x.jsonl", "--output-prefix", prefix, "--tokenizer-type", "ByteTokenizer"]
    assert main(["preprocess", *words]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not (tmp_path / "nowhere").exists()


def test_a_shard_size_is_told_in_the_units_of_its_flag(tmp_path, capsys):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n')
    words = ["--input", str(tmp_path / "x.jsonl"), "--output-prefix", str(tmp_path / "out")]
    words += ["--tokenizer-type", "ByteTokenizer", "--shard-size", "-1"]
    assert main(["preprocess", *words]) == 2
    assert "--shard-size -1: need at least 1 mebibyte of input" in capsys.readouterr().err
