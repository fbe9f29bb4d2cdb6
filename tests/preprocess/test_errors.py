"""What bad rows and bad inputs get."""

import contextlib
import errno
import gzip
import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coredata.formats import IndexedDatasetBuilder
from coredata.preprocess import PreprocessError, preprocess
from coredata.text import NullTokenizer

GOOD = b'{"text": "good"}\n'
BAD = {
    "not JSON": (b"hello", "not JSON: Expecting value at character 1"),
    "not UTF-8": (b'{"text": "\xff"}', "not UTF-8: byte 0xff, 10 bytes into the line"),
    "no object": (b'["text"]', "a list, not an object"),
    "missing": (b'{"content": "a"}', 'no key "text"; the row has "content"'),
    "null": (b'{"text": null}', 'the value under "text" is null'),
    "number": (b'{"text": 17}', 'the value under "text" is a number'),
    "list": (b'{"text": ["a", 1]}', 'item 1 of the list under "text" is a number'),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("shard_bytes", [None, 30])
def test_a_bad_line_ends_the_run_and_is_named(corpus, case, shard_bytes):
    data, reason = BAD[case]
    path = corpus.write("in.jsonl", GOOD * 3 + b"\n" + data + b"\n" + GOOD)
    with pytest.raises(PreprocessError) as caught:
        corpus.run(path, shard_bytes=shard_bytes)
    assert str(caught.value).startswith(f"{path}, line 5, byte {3 * len(GOOD) + 1}: {reason}")
    assert "max_errors=100 (--max-errors 100) allows a hundred" in str(caught.value)
    assert corpus.output_bytes() == {}


def test_truncated_last_line(corpus):
    path = corpus.write("in.jsonl", GOOD + b'{"text": "go')
    told = r"in.jsonl, line 2, byte 17: not JSON: Unterminated string.*the file ends here without a"
    with pytest.raises(PreprocessError, match=told):
        corpus.run(path)


def test_line_numbers_in_a_compressed_file_and_in_the_second_file(corpus):
    first = corpus.write("a.jsonl", GOOD * 4)
    second = corpus.write("b.jsonl.gz", gzip.compress(GOOD * 2 + b"{}\n"))
    with pytest.raises(PreprocessError, match=r"b.jsonl.gz, line 3, byte 34: no key \"text\""):
        corpus.run([first, second], shard_bytes=20)


@pytest.mark.parametrize("shard_bytes", [None, 25, 60])
@pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
def test_within_the_budget_bad_lines_are_skipped_and_listed(corpus, shard_bytes, batch_bytes):
    lines, expected, offset = [], [], 0
    for number, (data, reason) in enumerate(BAD.values()):
        for line in (GOOD, b"\r\n", data + b"\n"):
            offset += len(line)
            lines.append(line)
        expected.append((3 * number + 3, offset - len(line), reason, data))
    path = corpus.write("in.jsonl", b"".join(lines) + GOOD + b'{"te')
    report = corpus.run(
        path, max_errors=8, shard_bytes=shard_bytes, batch_bytes=batch_bytes, append_eod=True
    )
    assert corpus.texts() == [["good∎"]] * 8
    assert report.rows.bad_lines == 8
    assert report.rows.lines == 23
    assert report.error_report == f"{corpus.prefix}_errors.jsonl"
    with open(report.error_report) as file:
        listed = [json.loads(line) for line in file]
    for found, (line, byte, reason, data) in zip(listed, expected, strict=False):
        assert found["file"] == path
        assert (found["line"], found["byte"]) == (line, byte)
        assert found["reason"].startswith(reason)
        assert found["excerpt"] == data.decode(errors="replace")
    assert listed[7]["line"] == 23
    assert "skipped  8 bad lines, listed in" in report.summary()
    assert corpus.parts() == []


@pytest.mark.parametrize("shard_bytes", [None, 25])
def test_one_more_than_the_budget(corpus, shard_bytes):
    path = corpus.write("in.jsonl", (GOOD + b"oops\n") * 10)
    with pytest.raises(PreprocessError) as caught:
        corpus.run(path, max_errors=3, shard_bytes=shard_bytes)
    assert str(caught.value) == (
        f"{path}, line 8, byte 83: not JSON: Expecting value at character 1. This is bad line 4, "
        f"and max_errors (--max-errors) is 3; {corpus.prefix}_errors.jsonl lists them all so far"
    )
    with open(f"{corpus.prefix}_errors.jsonl") as file:
        assert [json.loads(line)["line"] for line in file] == [2, 4, 6, 8]
    report = corpus.run(path, max_errors=10, shard_bytes=shard_bytes)
    assert report.rows.bad_lines == 10
    assert corpus.texts() == [["good"]] * 10


def test_a_report_of_an_earlier_run_does_not_stay(corpus):
    path = corpus.write("in.jsonl", GOOD + b"oops\n")
    report = corpus.run(path, max_errors=1, error_report=str(corpus.directory / "bad"))
    assert report.error_report == str(corpus.directory / "bad")
    path = corpus.write("in.jsonl", GOOD)
    report = corpus.run(path, max_errors=1, error_report=str(corpus.directory / "bad"))
    assert report.error_report is None
    assert not (corpus.directory / "bad").exists()


def test_a_row_that_lacks_one_of_several_keys_is_skipped_in_all(corpus):
    rows = [{"a": "1", "b": "2"}, {"a": "3"}, {"a": "5", "b": "6"}]
    corpus.run(corpus.write_rows("in.jsonl", rows), json_keys=["a", "b"], max_errors=1)
    assert corpus.texts("a") == [["1"], ["5"]]
    assert corpus.texts("b") == [["2"], ["6"]]


def test_bad_rows_of_parquet(corpus):
    table = pa.table({"text": ["a", None, "b"] * 4})
    path = str(corpus.directory / "in.parquet")
    pq.write_table(table, path, row_group_size=4)
    with pytest.raises(PreprocessError, match=r"in.parquet, row 2: the value under \"text\" is nu"):
        corpus.run(path)
    report = corpus.run(path, max_errors=4, shard_bytes=1)
    assert report.shards == 3
    assert corpus.texts() == [["a"], ["b"]] * 4
    with open(report.error_report) as file:
        listed = [json.loads(line) for line in file]
    assert [found["line"] for found in listed] == [2, 5, 8, 11]
    assert {found["byte"] for found in listed} == {None}


def test_a_text_that_the_tokenizer_refuses(corpus):
    rows = [{"text": "1 2"}, {"text": "1 x"}, {"text": "9"}, {"text": 5}, {"text": "3"}]
    path = corpus.write_rows("in.jsonl", rows)
    told = r"in.jsonl, line 2, byte 16: the tokenizer refuses it: word 1 of the text is 'x'"
    with pytest.raises(PreprocessError, match=told):
        preprocess(path, corpus.prefix, NullTokenizer(9))
    report = preprocess(path, corpus.prefix, NullTokenizer(9), max_errors=3)
    assert corpus.documents() == [[[1, 2]], [[3]]]
    with open(report.error_report) as file:
        assert [json.loads(line)["line"] for line in file] == [2, 3, 4]


def test_damaged_file_is_an_error_whatever_the_budget(corpus):
    path = corpus.write("in.jsonl.gz", gzip.compress(GOOD * 1000)[:-9])
    with pytest.raises(PreprocessError, match=r"in.jsonl.gz: the gzip data ends too early"):
        corpus.run(path, max_errors=1000)


def test_a_row_that_the_tokenizer_refuses_among_many(corpus):
    rows = [{"text": "1 2"}] * 20 + [{"text": "3 x"}] + [{"text": "4"}] * 20
    path = corpus.write_rows("in.jsonl", rows)
    report = preprocess(path, corpus.prefix, NullTokenizer(10), max_errors=1)
    assert report.keys["text"].documents == 40
    with open(report.error_report) as file:
        assert [json.loads(line)["line"] for line in file] == [21]


def test_no_tokens(corpus):
    path = corpus.write("in.jsonl", b'{"text": ""}\n\n{"text": []}\noops\n')
    told = (
        r"no token was written: the input has 1 file with 4 lines, 1 of them blank and 1 "
        r"skipped; the other 2 have no text under text. Is it the right input and the right keys"
    )
    with pytest.raises(PreprocessError, match=told):
        corpus.run(path, max_errors=1)
    assert set(corpus.output_bytes()) == {"_errors.jsonl"}
    assert corpus.parts() == []


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        ([b""], "1 file with 0 lines. Is it the right input, and was it written to its end?"),
        ([b"", b""], "2 files with 0 lines. Is it the right input, and"),
        ([b"\n", b"oops\n"], "2 files with 2 lines, 1 of them blank and 1 skipped. Is it the"),
        ([b'{"text": ""}'], "1 line, 0 of them blank and 0 skipped; the other has no text under"),
    ],
)
def test_files_without_text(corpus, contents, told):
    paths = [corpus.write(f"{n}.jsonl", content) for n, content in enumerate(contents)]
    with pytest.raises(PreprocessError, match=re.escape(told)) as caught:
        corpus.run(paths, max_errors=1)
    assert str(caught.value).startswith("no token was written: the input has ")


@pytest.mark.parametrize("ending", ["gz", "zst"])
@pytest.mark.parametrize("others", [[], ["a.jsonl", "empty.jsonl"]])
def test_a_compressed_file_without_a_byte(corpus, ending, others):
    corpus.write("a.jsonl", GOOD)
    corpus.write("empty.jsonl", b"")
    corpus.write(f"z.jsonl.{ending}", b"")
    inputs = [str(corpus.directory / name) for name in [*others, f"z.jsonl.{ending}"]]
    told = rf"z.jsonl.{ending}: the \w+ data ends before it begins: the file has 0 bytes"
    with pytest.raises(PreprocessError, match=told):
        corpus.run(inputs, max_errors=9)
    assert corpus.output_bytes() == {}


def test_input_named_twice(corpus):
    path = corpus.write("a.jsonl", GOOD)
    with pytest.raises(PreprocessError, match=r"a.jsonl is named 2 times by the input"):
        corpus.run([path, str(corpus.directory / "*.jsonl")])


def test_input_that_does_not_exist(corpus):
    with pytest.raises(FileNotFoundError, match=r"nowhere.jsonl does not exist"):
        corpus.run(str(corpus.directory / "nowhere.jsonl"))
    with pytest.raises(FileNotFoundError, match=r"no file matches .*\*.jsonl"):
        corpus.run(str(corpus.directory / "*.jsonl"))


def pipe(directory):
    os.mkfifo(directory / "in.jsonl")
    return str(directory / "in.jsonl")


def unix_socket(directory):
    path = directory / "s"
    with contextlib.chdir(directory), socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")  # paths of sockets must be short
    return str(path)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (pipe, "a pipe (FIFO)"),
        (unix_socket, "a socket"),
        (lambda directory: "/dev/null", "a character device"),
    ],
)
def test_input_that_is_no_regular_file(corpus, make, kind):
    path = make(corpus.directory)
    told = f"{path} is {kind}, but input must be a regular file: it is read in stretches, and "
    with pytest.raises(PreprocessError, match=re.escape(told)) as caught:
        corpus.run([corpus.write("a.jsonl", GOOD), path])
    assert "Write it to a file first, for example with cat … > input.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert corpus.output_bytes() == {}


def test_an_inherited_pipe_and_an_inherited_file(corpus):
    path = corpus.write("a.jsonl", GOOD)
    reading, writing = os.pipe()
    os.write(writing, GOOD)
    os.close(writing)
    with pytest.raises(PreprocessError, match=rf"/dev/fd/{reading} is a pipe \(FIFO\), but"):
        corpus.run(f"/dev/fd/{reading}")
    os.close(reading)
    with open(path, "rb") as file:
        assert corpus.run(f"/dev/fd/{file.fileno()}").documents == 1
    assert corpus.texts() == [["good"]]


def test_parquet_without_the_column(corpus):
    path = str(corpus.directory / "in.parquet")
    pq.write_table(pa.table({"content": ["a"]}), path)
    with pytest.raises(ValueError, match=r'in.parquet has no column "text"; it has "content"'):
        corpus.run(path, max_errors=5)


def test_input_that_changes_while_it_is_read(corpus, monkeypatch):
    path = corpus.write("in.jsonl", GOOD * 10)

    class Meddler(NullTokenizer):
        def encode_batch(self, texts):
            os.utime(path, (1, 1))
            return super().encode_batch([])[0], super().encode_batch(["1"] * len(texts))[1] * 0

    with pytest.raises(PreprocessError, match=r"in.jsonl has changed while it was being read"):
        preprocess(path, corpus.prefix, Meddler(5), shard_bytes=40)


class Exhausted(NullTokenizer):
    def encode_batch(self, texts):
        raise MemoryError


def test_an_error_of_no_known_kind_says_where_it_came_from(corpus):
    path = corpus.write("in.jsonl", GOOD)
    with ThreadPoolExecutor(1) as executor, pytest.raises(MemoryError) as caught:
        preprocess(path, corpus.prefix, Exhausted(5), executor=executor)
    assert caught.value.__notes__ == [f"while working on shard 0 ({path}, bytes 0 to 17)"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_disk_that_takes_no_more(corpus, monkeypatch, number):
    calls = []

    def full(self, *arguments):
        calls.append(self)
        if len(calls) == 3:
            raise OSError(number, os.strerror(number))
        return add(self, *arguments)

    add = IndexedDatasetBuilder.add_documents
    path = corpus.write("in.jsonl", GOOD * 10)
    told = (
        f"shard 2 ({path}, bytes 60 to 90): what is made of it cannot be written in "
        f"{corpus.prefix}.parts ({os.strerror(number)}). Make room there (see df, quota and ulimit "
        "-f) and run the same again: finished shards are kept. Or give another output prefix "
        "(--output-prefix)"
    )
    with monkeypatch.context() as patched:
        patched.setattr(IndexedDatasetBuilder, "add_documents", full)
        with pytest.raises(PreprocessError) as caught:
            corpus.run(path, shard_bytes=30)
    assert str(caught.value) == told
    report = corpus.run(path, shard_bytes=30)
    assert report.shards_reused == 2
    assert corpus.texts() == [["good"]] * 10


def test_the_report_does_not_replace_an_input(corpus):
    path = corpus.write("out_errors.jsonl", GOOD)
    told = r"out_errors.jsonl is an input, and the report of bad lines would replace it.*leave it"
    with pytest.raises(PreprocessError, match=told):
        corpus.run(str(corpus.directory / "*.jsonl"))
    with pytest.raises(PreprocessError, match=told):
        corpus.run(
            path, error_report=f"{corpus.directory}/../{corpus.directory.name}/out_errors.jsonl"
        )
    assert os.path.exists(path)
    assert corpus.run(path, error_report=f"{path}.report").documents == 1


def test_ids_beyond_the_stated_vocabulary(corpus):
    class Lying(NullTokenizer):
        @property
        def vocab_size(self):
            return 100

    path = corpus.write_rows("in.jsonl", [{"text": "1"}, {"text": "70000"}])
    with pytest.raises(PreprocessError, match=r"shard 0 \(.*in.jsonl, bytes 0 to 32\): .*70000"):
        preprocess(path, corpus.prefix, Lying(80_000))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"json_keys": []}, r"json_keys is empty; name at least one key, such as 'text'"),
        ({"json_keys": ["a", "a"]}, r"json_keys names 'a' twice"),
        ({"json_keys": ["a/b"]}, r"the key 'a/b' cannot be part of a file name"),
        ({"json_keys": [""]}, r"the key '' cannot be part of a file name"),
        ({"workers": 0}, r"workers=0, but at least 1 is needed"),
        ({"max_errors": -1}, r"max_errors=-1, but at least 0 is needed"),
        ({"batch_bytes": 0}, r"batch_bytes=0, but at least 1 is needed"),
        ({"shard_bytes": 0}, r"shard_bytes=0, but at least 1 is needed"),
        ({"log_interval": 0}, r"log_interval=0, but at least 1 is needed"),
    ],
)
def test_settings_that_make_no_sense(corpus, options, told):
    with pytest.raises(PreprocessError, match=told):
        corpus.run(corpus.write("in.jsonl", GOOD), **options)
    assert not os.path.exists(f"{corpus.prefix}.parts")


def refusing(number):
    def refuse(path, *_, **__):
        raise OSError(number, os.strerror(number), path)

    return refuse


@pytest.mark.parametrize(
    ("number", "kind", "reason"),
    [
        (errno.EACCES, PermissionError, "Permission denied"),
        (errno.ENOENT, FileNotFoundError, "No such file or directory"),
        (errno.EROFS, OSError, "Read-only file system"),
    ],
)
def test_a_directory_that_cannot_be_made(corpus, monkeypatch, number, kind, reason):
    path = corpus.write("in.jsonl", GOOD)
    monkeypatch.setattr("coredata.preprocess.work_lock.os.makedirs", refusing(number))
    told = (
        f"{corpus.prefix}.parts is where preprocess keeps its work until the output is complete, "
        f"and it cannot be written ({reason}). Give an output prefix (--output-prefix) in a "
        "directory that you may write to and that has room, or make this one so"
    )
    with pytest.raises(kind) as caught:
        corpus.run(path)
    assert str(caught.value) == told


def test_a_directory_that_cannot_be_written_or_replaced(corpus, monkeypatch):
    path = corpus.write("in.jsonl", GOOD)
    inside = corpus.write("a_file", b"") + "/out"
    told = r"a_file/out.parts is where .* cannot be written \(Not a directory\)"
    with pytest.raises(NotADirectoryError, match=told):
        preprocess(path, inside, NullTokenizer(5))
    with monkeypatch.context() as patched:
        patched.setattr("coredata.preprocess.work.atomic_write", refusing(errno.EACCES))
        with pytest.raises(PermissionError, match=r"out.parts is where .* \(Permission denied\)"):
            corpus.run(path)
    with pytest.raises(PreprocessError, match="not JSON"):
        corpus.run(corpus.write("b.jsonl", b"oops"))
    monkeypatch.setattr("coredata.preprocess.work.os.unlink", refusing(errno.EACCES))
    with pytest.raises(PermissionError, match=r"out.parts is where .* \(Permission denied\)"):
        corpus.run(path)
