import fsspec
import pytest

from coredata.storage import exists, expand, is_url, join, local_path, size


@pytest.mark.parametrize(
    ("path", "url", "local"),
    [
        ("/data/a.bin", False, "/data/a.bin"),
        ("a.bin", False, "a.bin"),
        ("odd:name", False, "odd:name"),
        ("C:\\data", False, "C:\\data"),
        ("s3://bucket/a.bin", True, None),
        ("memory://a.bin", True, None),
        ("file:///data/a.bin", True, "/data/a.bin"),
        ("simplecache::s3://bucket/a.bin", True, None),
    ],
)
def test_urls_and_local_paths(path, url, local):
    assert is_url(path) == url
    assert local_path(path) == local


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (("/data", "a", "b.bin"), "/data/a/b.bin"),
        (("s3://bucket/", "a", "b.bin"), "s3://bucket/a/b.bin"),
        (("s3://bucket", "/a/", "b.bin"), "s3://bucket/a/b.bin"),
        (("memory://", "a"), "memory://a"),
    ],
)
def test_join(parts, joined):
    assert join(*parts) == joined


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("b.jsonl", "a.jsonl", "c.txt", "[odd].jsonl", "deep/d.jsonl", "deep/er/e.jsonl"):
        (tmp_path / name).write_text(name)
    (tmp_path / "dir.jsonl").mkdir()
    return tmp_path


def test_a_pattern_gives_sorted_files_without_directories(tree):
    found = expand(str(tree / "*.jsonl"))
    assert found == [str(tree / name) for name in ("[odd].jsonl", "a.jsonl", "b.jsonl")]


def test_patterns_of_any_depth(tree):
    assert expand(str(tree / "**" / "[de].jsonl")) == [
        str(tree / "deep" / "d.jsonl"),
        str(tree / "deep" / "er" / "e.jsonl"),
    ]


def test_order_of_arguments_is_kept_and_names_are_taken_literally(tree):
    given = [str(tree / "c.txt"), str(tree / "[odd].jsonl"), str(tree / "a.jsonl")]
    assert expand(given) == given


def test_file_urls_stay_urls(tree):
    assert expand(f"file://{tree}/a*.jsonl") == [f"file://{tree}/a.jsonl"]


def test_what_expand_refuses(tree):
    with pytest.raises(FileNotFoundError, match=r"missing\.jsonl does not exist"):
        expand(str(tree / "missing.jsonl"))
    with pytest.raises(FileNotFoundError, match=r"no file matches .*\*\.parquet"):
        expand([str(tree / "a.jsonl"), str(tree / "*.parquet")])
    with pytest.raises(IsADirectoryError, match=r"deep is a directory; name its files.*deep/\*"):
        expand(str(tree / "deep"))


def test_local_existence_and_size(tree):
    assert exists(str(tree / "a.jsonl"))
    assert not exists(str(tree / "missing"))
    assert size(str(tree / "a.jsonl")) == 7
    assert size(f"file://{tree}/a.jsonl") == 7
    with pytest.raises(FileNotFoundError):
        size(str(tree / "missing"))


def test_memory_urls():
    memory = fsspec.filesystem("memory")
    memory.pipe({"/paths/b.txt": b"bb", "/paths/a.txt": b"a", "/paths/deep/c.txt": b""})
    assert exists("memory://paths/a.txt")
    assert not exists("memory://paths/z.txt")
    assert size("memory://paths/b.txt") == 2
    assert expand("memory://paths/*.txt") == ["memory:///paths/a.txt", "memory:///paths/b.txt"]
    with pytest.raises(FileNotFoundError, match=r"no file matches memory://paths/\*\.z"):
        expand("memory://paths/*.z")
