import re

import pytest

from coredata.tools.data_words import in_flags
from coredata.tools.main import main

PYTHON = re.compile(r"\w=(True|None|\{|\d)|\w\(\w|path_to_cache")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--workers", "0"], "--workers 0, but at least 1 is needed"),
        (["--max-errors", "-1"], "--max-errors -1, but at least 0"),
        (["--tokenizer-model", ""], ""),
    ],
)
def test_preprocess(words, expected, tmp_path, capsys):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n')
    files = ["--input", str(tmp_path / "x.jsonl"), "--output-prefix", str(tmp_path / "out")]
    kind = ["--tokenizer-type", "ByteTokenizer"]
    assert main(["preprocess", *files, *(kind if expected else []), *words]) == 2
    told = capsys.readouterr().err
    assert expected in told
    assert not PYTHON.search(told)


def test_which_tokenizer(tmp_path, capsys):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n')
    files = ["--input", str(tmp_path / "x.jsonl"), "--output-prefix", str(tmp_path / "out")]
    assert main(["preprocess", *files]) == 2
    assert "Give --tokenizer-model tokenizer.json, GPT-2's --vocab-file" in capsys.readouterr().err


def test_merge_of_several_dtypes(write_pair, tmp_path, capsys):
    import numpy as np

    pairs = [write_pair("a"), write_pair("b", dtype=np.int32)]
    assert main(["merge", "--input", *pairs, "--output-prefix", str(tmp_path / "out")]) == 2
    assert "give --widen to convert" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("left out and counted (skip_bad_rows=True)", "left out and counted (--skip-bad-rows)"),
        (
            "in x. Give one, such as template=ChatTemplate(text), or a .jinja file. Give "
            "--chat-template PATH",
            "in x. Give --chat-template PATH",
        ),
        ("There are a; make one's own with PromptFormat(name, counts, template).", "There are a."),
        (
            "has, e.g. fim_extra_tokens={'prefix': '<P>'}.",
            "has, with --fim-prefix-token TOKEN and its like.",
        ),
        (
            "or set path_to_cache to another directory, or to None to build indices in memory",
            "or give another --data-cache-path, or none to build indices in memory",
        ),
        (
            "is supported. Open with block_size=0 for a streaming file interface.",
            "is supported. Download the file first, and give its local path.",
        ),
        ("max_errors=100 (--max-errors 100) allows", "--max-errors 100 allows"),
    ],
)
def test_words(text, expected):
    assert in_flags(text) == expected
