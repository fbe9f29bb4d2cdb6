"""The shipped vectors: what the reference's writer makes of a corpus, byte for byte."""

import shutil
from importlib.resources import as_file, files

import pytest

from coredata.preprocess import preprocess
from coredata.text import ByteTokenizer


@pytest.fixture(scope="module")
def golden():
    with as_file(files("coredata.testing") / "golden" / "preprocess") as path:
        assert len(list(path.glob("*.idx"))) == 4
        yield path


@pytest.mark.parametrize("shard_bytes", [None, 40, 100, 10**6])
@pytest.mark.parametrize("append_eod", [False, True])
def test_golden_files(golden, tmp_path, append_eod, shard_bytes):
    shutil.copy(golden / "corpus.jsonl", tmp_path)
    name = "corpus_eod" if append_eod else "corpus"
    report = preprocess(
        str(tmp_path / "corpus.jsonl"),
        str(tmp_path / name),
        ByteTokenizer(),
        json_keys=["text", "summary"],
        append_eod=append_eod,
        shard_bytes=shard_bytes,
    )
    expected = sorted(
        path
        for path in golden.iterdir()
        if path.suffix in (".bin", ".idx") and path.name.startswith("corpus_eod") == append_eod
    )
    assert len(expected) == 4
    for path in expected:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"corpus.jsonl", *(path.name for path in expected)}
    assert report.dtype == "uint16"
    assert report.keys["text"].documents == 7
    assert report.keys["text"].sequences == 6
    assert report.keys["text"].empty_documents == 2
    assert report.rows.lines == 7
