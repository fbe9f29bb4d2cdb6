"""Which files a path means: one, several, or a data set on the Hub."""

import json
import pickle
from typing import ClassVar

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry as REGISTERED

from coredata.formats.row_source_hub import hub_files, is_hub_name
from coredata.formats.row_source_lines import JsonLinesSource
from coredata.formats.row_source_open import open_rows


class FakeHub(MemoryFileSystem):
    """A file system in memory that answers to hf://."""

    protocol = "hf"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("hf://").strip("/")

    def find(self, path, *args, **kwargs):
        found = super().find(path, *args, **kwargs)
        if not found:
            raise FileNotFoundError(path)
        return found


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setitem(REGISTERED, "hf", FakeHub)
    FakeHub.store.clear()
    return fsspec.filesystem("hf")


def put(hub, path, rows):
    with hub.open(f"datasets/me/chats/{path}", "wb") as file:
        if path.endswith(".parquet"):
            pq.write_table(pa.Table.from_pylist(rows), file)
        else:
            file.write("".join(json.dumps(row) + "\n" for row in rows).encode())


def texts(source):
    return [source[row]["text"] for row in range(len(source))]


def test_the_train_split_of_a_data_set(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(hub, "README.md", [])
    put(hub, "data/train-00001-of-00002.parquet", [{"text": "c"}])
    put(hub, "data/train-00000-of-00002.parquet", [{"text": "a"}, {"text": "b"}])
    put(hub, "data/test-00000-of-00001.parquet", [{"text": "x"}])
    put(hub, "train.jsonl", [{"text": "y"}])
    source = open_rows("me/chats")
    assert texts(source) == ["a", "b", "c"]
    assert source.where(2).endswith("data/train-00001-of-00002.parquet, row 0")
    assert texts(pickle.loads(pickle.dumps(source))) == ["a", "b", "c"]
    assert source.identity()["name"] == "me/chats"
    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "chats").write_text('{"text": "local"}\n')
    assert texts(open_rows("me/chats")) == ["local"]


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["train.jsonl", "valid.jsonl", "more.jsonl"], ["train.jsonl"]),
        (
            ["chats.jsonl.zst", "more.jsonl", "dev.jsonl", "validation.json"],
            ["chats.jsonl.zst", "more.jsonl"],
        ),
        (["test/a.json", "train/b.json", "train/a.json"], ["train/a.json", "train/b.json"]),
        (["trainer.parquet", "latest.parquet"], ["latest.parquet", "trainer.parquet"]),
    ],
)
def test_which_files_are_the_train_split(hub, files, chosen):
    for name in files:
        put(hub, name, [])
    assert hub_files("me/chats") == [f"hf://datasets/me/chats/{name}" for name in chosen]


def test_a_data_set_without_train_files(hub):
    put(hub, "README.md", [])
    put(hub, "test.jsonl", [])
    with pytest.raises(FileNotFoundError, match=r"no file of a train split .*: README\.md, test"):
        open_rows("me/chats")


def test_several_configurations_are_not_mixed(hub):
    put(hub, "en/train.jsonl", [])
    put(hub, "de/train.jsonl", [])
    with pytest.raises(ValueError, match=r"several directories \(de, en\).* hf://.*/en/\*\.jsonl"):
        open_rows("me/chats")


def test_no_such_data_set(hub):
    with pytest.raises(FileNotFoundError, match="you/x is neither a local file nor a data set on"):
        open_rows("you/x")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("owner/repo", True),
        ("owner/repo-1.5_b", True),
        ("./owner/repo", False),
        ("../repo", False),
        ("/owner/repo", False),
        ("owner/repo/more", False),
        ("repo", False),
        ("s3://owner/repo", False),
        ("data/train.jsonl", False),
        ("data/train.json.gz", False),
        ("data/*", False),
    ],
)
def test_names_of_data_sets(path, expected):
    assert is_hub_name(path) is expected


def test_files_that_do_not_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"data/train\.jsonl does not exist"):
        open_rows("data/train.jsonl")
    with pytest.raises(IsADirectoryError, match="is a directory; name its files"):
        open_rows(str(tmp_path))


def test_patterns_join_files_of_any_kind(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "x": 1}\n')
    pq.write_table(pa.Table.from_pylist([{"text": "b", "y": 2}]), tmp_path / "b.parquet")
    (tmp_path / "c.jsonl").write_text("")
    (tmp_path / "d.jsonl").write_text('bad\n{"text": "d"}\n')
    source = open_rows(str(tmp_path / "*"), skip_bad_rows=True)
    assert texts(source) == ["a", "b", "d"]
    assert (source.columns, source.skipped, source.identity()["files"]) == (
        ("text", "x", "y"),
        1,
        4,
    )
    assert [source[i] for i in (0, 1)] == [{"text": "a", "x": 1}, {"text": "b", "y": 2}]
    narrowed = source.narrowed(["text"])
    assert narrowed[1] == {"text": "b"}
    assert narrowed.where(2).endswith("d.jsonl, line 2")
    with pytest.raises(IndexError, match=r"row 3 was asked of .* which has 3"):
        source[3]


def test_a_known_index_saves_going_through_the_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n')
    index = JsonLinesSource(str(path)).index
    asked = []

    def find(file):
        asked.append(file)
        return index

    assert open_rows(str(path), find_index=find).index is index
    assert asked == [str(path)]
