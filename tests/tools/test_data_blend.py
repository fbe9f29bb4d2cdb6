import json
from pathlib import Path

import pytest

from coredata.tools.data_arguments import data_plan, datasets_from_args
from coredata.tools.data_blend import blends_from_args, prefixes_of

NULL = ("--tokenizer-type", "NullTokenizer", "--vocab-size", "1000")
SIZES = ("--seq-length", "16", "--num-samples", "20", "0", "0")


def test_ways_to_write_a_blend(parse, tmp_path):
    (tmp_path / "blend.txt").write_text("0.3 a\n0.7\tb\n")
    per_split = {"train": ["1", "a", "3", "b"], "valid": "c d", "test": None}
    (tmp_path / "split.json").write_text(json.dumps(per_split))
    for flags, expected in (
        (("--data-path", "a"), ((["a"], None), None)),
        (("--data-path", "a", " b ", "c"), ((["a", "b", "c"], None), None)),
        (("--data-path", "a", "b"), ((["a", "b"], None), None)),
        (("--data-path", "0.3", "a", "0.7", "b"), ((["a", "b"], [0.3, 0.7]), None)),
        (("--data-args-path", tmp_path / "blend.txt"), ((["a", "b"], [0.3, 0.7]), None)),
        (
            ("--per-split-data-args-path", tmp_path / "split.json"),
            (None, [(["a", "b"], [1.0, 3.0]), (["c", "d"], None), None]),
        ),
        (("--train-data-path", "a", "--test-data-path", "b"),)
        + ((None, [(["a"], None), None, (["b"], None)]),),
        (("--mock-data",), (None, None)),
    ):
        assert blends_from_args(parse(*flags)) == expected


def test_a_number_may_be_a_prefix(parse, write_pair, tmp_path, monkeypatch):
    write_pair("1")
    write_pair("2")
    write_pair("3")
    monkeypatch.chdir(tmp_path)
    assert blends_from_args(parse("--data-path", "1", "2", "3"))[0] == (["1", "2", "3"], None)


def test_prefixes_once():
    assert prefixes_of((["a", "b", "a"], None), None) == ["a", "b"]
    assert prefixes_of(None, [(["b"], None), None, (["a", "b"], [1.0, 2.0])]) == ["b", "a"]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ((), r"--data-path names no files; give prefixes, or weight prefix"),
        (
            ("0.3", "a", "0.7"),
            r"--data-path has 3 items, 2 of them numbers; weights and prefixes come in pairs"
            r".*One is missing or too many after a",
        ),
        (("0.3", "a", "b"), r"--data-path has 3 items, 1 of them numbers"),
        (
            ("0.3", "a", "O.7", "b"),
            r"--data-path: item 3, 'O.7', stands where a weight is expected; write",
        ),
        (("a", "0.3", "b", "0.7"), r"--data-path: item 1, 'a', stands where a weight is expected"),
        (("-1", "a"), r"--data-path: weight -1.0 of a; give a finite number of at least 0"),
        (("nan", "a", "1", "b"), r"--data-path: weight nan of a"),
    ],
)
def test_odd_weights(parse, items, message):
    args = parse("--data-path")
    args.data_path = list(items)
    with pytest.raises(ValueError, match=message):
        blends_from_args(args)


def test_a_blend_file_with_odd_weights(parse, tmp_path):
    path = tmp_path / "blend.txt"
    path.write_text("0.3 a 0.7 b 0.1")
    with pytest.raises(ValueError, match=r"--data-args-path .*blend.txt has 5 items.* after b"):
        blends_from_args(parse("--data-args-path", path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"--data-args-path: .*blend.txt is not text"):
        blends_from_args(parse("--data-args-path", path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1", r"split.json is not JSON"),
        ('["a"]', r"""split.json holds .* need an object {"train": \[items\], …}"""),
        ("{}", r"need an object"),
        ('{"trian": ["a"]}', r"unknown split 'trian'. Did you mean 'train'\? There are train, va"),
        ('{"validation": ["a"]}', r"unknown split 'validation'. Did you mean 'valid'"),
        ('{"train": {"a": 1}}', r"train is .* need a list, such as"),
    ],
)
def test_a_bad_file_of_splits(parse, tmp_path, content, message):
    (tmp_path / "split.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        blends_from_args(parse("--per-split-data-args-path", tmp_path / "split.json"))


def test_a_typo_in_a_prefix_names_what_is_near(parse, write_pair, tmp_path):
    write_pair("books_text_document")
    write_pair("wiki_text_document")
    flags = ("--split", "1", *NULL, *SIZES)
    with pytest.raises(
        FileNotFoundError, match=r"no token files .*boks.* Did you mean .*/books_text_document\?"
    ):
        data_plan(parse("--data-path", tmp_path / "boks_text_document", *flags))
    with pytest.raises(
        FileNotFoundError,
        match=r"In .* there are books_text_document, wiki_text_document\. Give the path of a pair",
    ):
        data_plan(parse("--data-path", tmp_path / "x", *flags))
    with pytest.raises(FileNotFoundError, match=r"There is no directory .*nowhere either"):
        data_plan(parse("--data-path", tmp_path / "nowhere" / "x", *flags))


def test_a_typo_in_the_name_of_a_blend_file(parse, tmp_path):
    (tmp_path / "blend.txt").write_text("a")
    with pytest.raises(
        FileNotFoundError,
        match=r"--data-args-path: there is no file .*blnd.txt. Did you mean .*d",
    ):
        blends_from_args(parse("--data-args-path", tmp_path / "blnd.txt"))
    with pytest.raises(FileNotFoundError, match=r"--per-split-data-args-path: there is no file"):
        blends_from_args(parse("--per-split-data-args-path", tmp_path / "blnd.json"))


def test_half_a_pair(parse, write_pair):
    prefix = write_pair("a")
    flags = ("--data-path", prefix, "--split", "1", *NULL, *SIZES)
    Path(f"{prefix}.idx").rename(f"{prefix}.kept")
    with pytest.raises(
        FileNotFoundError,
        match=r"a.idx is missing, although .*a.bin is there; copy it, or run",
    ):
        datasets_from_args(parse(*flags))
    Path(f"{prefix}.kept").rename(f"{prefix}.idx")
    Path(f"{prefix}.bin").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"a.bin is missing, although .*a.idx is there; copy it from"
    ):
        datasets_from_args(parse(*flags))


def test_a_suffix_with_a_prefix(parse, write_pair):
    prefix = write_pair("a")
    with pytest.raises(FileNotFoundError, match=rf"a.bin was given as a prefix.*; use {prefix}"):
        data_plan(parse("--data-path", f"{prefix}.bin", "--split", "1", *NULL, *SIZES))


def test_rows_that_are_not_there(parse, chats, tmp_path):
    flags = ("--split", "1", "--sft", "--tokenizer-type", "ByteTokenizer", *SIZES)
    with pytest.raises(FileNotFoundError, match=r"no file .*chat.jsonl. Did you mean .*chats.json"):
        data_plan(parse("--data-path", tmp_path / "chat.jsonl", *flags))
    assert data_plan(parse("--data-path", "owner/repo", *flags)).prefixes == ("owner/repo",)


def test_files_are_not_looked_for_when_caches_are_trusted(parse, tmp_path):
    flags = ("--data-path", "nowhere", "--split", "1", *NULL, *SIZES)
    fast = ("--dataloader-fast-cache-load", "--data-cache-path", tmp_path)
    assert data_plan(parse(*flags, *fast)).prefixes == ("nowhere",)
