"""Packages that a URL may need: what is said without them, and msc:// with the real one."""

import importlib
import json
import os
import uuid

import numpy as np
import pytest

from coredata.formats import IndexedDataset, IndexedDatasetBuilder, merge, verify_indexed
from coredata.storage import exists, expand, open_binary, read_bytes, remove
from coredata.storage.remote import filesystem


@pytest.mark.parametrize(
    ("url", "extra"),
    [
        ("s3://bucket/x", "s3"),
        ("s3a://bucket/x", "s3"),
        ("msc://profile/x", "msc"),
        ("simplecache::s3://bucket/x", "s3"),
    ],
)
def test_a_missing_package_is_named_by_its_extra(monkeypatch, url, extra):
    def not_installed(*_, **__):
        raise ImportError("Install something to access it")

    monkeypatch.setattr("fsspec.core.url_to_fs", not_installed)
    with pytest.raises(
        ImportError,
        match=rf"{url} needs a package that is not installed: pip install 'coredata\[{extra}\]'",
    ):
        read_bytes(url)


def test_a_scheme_that_fsspec_has_not_heard_of(monkeypatch):
    registry = importlib.import_module("fsspec.registry")
    monkeypatch.setattr(registry, "known_implementations", {})
    monkeypatch.setattr(registry, "_registry", {})
    with pytest.raises(
        ImportError, match=r"pip install 'coredata\[msc\]' \(Protocol not known: ms"
    ):
        filesystem("msc://profile/x")


def test_other_errors_come_as_they_are():
    with pytest.raises(ValueError, match="Protocol not known: nonsense"):
        read_bytes("nonsense://x")
    with pytest.raises(TypeError):
        read_bytes(
            "s3://bucket/x", {"no_such_option_of_anything": 1, "key": 1, "username": 2, 3: 4}
        )


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A profile of the multi-storage-client that is a directory."""
    root = tmp_path / "store"
    root.mkdir()
    name = f"p{uuid.uuid4().hex[:8]}"
    provider = {"type": "file", "options": {"base_path": str(root)}}
    config = {"profiles": {name: {"storage_provider": provider}}}
    (tmp_path / "msc.json").write_text(json.dumps(config))
    monkeypatch.setenv("MSC_CONFIG", str(tmp_path / "msc.json"))
    return f"msc://{name}", root


def test_files_behind_msc(profile):
    url, root = profile
    (root / "dir").mkdir()
    (root / "dir" / "a.txt").write_bytes(b"abc")
    assert exists(f"{url}/dir/a.txt")
    assert not exists(f"{url}/dir/b.txt")
    assert read_bytes(f"{url}/dir/a.txt") == b"abc"
    assert expand(f"{url}/dir/*.txt") == [f"{url}/dir/a.txt"]
    with open_binary(f"{url}/dir/a.txt") as file:
        assert file.read() == b"abc"
    remove(f"{url}/dir/a.txt")
    assert not exists(f"{url}/dir/a.txt")


def test_token_files_behind_msc(profile, tmp_path):
    url, root = profile
    tokens = np.arange(10_000, dtype=np.uint16)
    for prefix in (f"{url}/x", str(tmp_path / "x")):
        with IndexedDatasetBuilder(prefix, np.uint16) as builder:
            builder.add_documents(tokens, np.array([9000, 1000]))
    for suffix in (".bin", ".idx"):
        assert (root / f"x{suffix}").read_bytes() == (tmp_path / f"x{suffix}").read_bytes()
    options = {"coredata": {"copies": str(tmp_path / "copies")}}
    dataset = IndexedDataset(f"{url}/x", storage_options=options)
    before = dataset.bin_reader.counters.bytes_fetched
    assert dataset.get(1, 5, 3).tolist() == [9005, 9006, 9007]
    assert dataset.bin_reader.counters.bytes_fetched - before < 5000
    assert merge([f"{url}/x"] * 2, f"{url}/y", storage_options=options).tokens == 20_000
    assert verify_indexed(f"{url}/y", storage_options=options).documents == 4
    with pytest.raises(FileNotFoundError, match="do not exist"):
        IndexedDataset(f"{url}/none")


def test_msc_in_a_forked_child_after_its_parent_has_read(profile, tmp_path):
    url, _ = profile
    with IndexedDatasetBuilder(f"{url}/x", np.uint16) as builder:
        builder.add_documents(np.arange(100, dtype=np.uint16), np.array([50, 50]))
    options = {"coredata": {"copies": str(tmp_path / "copies"), "deadline": 5.0}}
    dataset = IndexedDataset(f"{url}/x", storage_options=options)
    assert dataset[0][0] == 0
    child = os.fork()
    if child == 0:
        os._exit(0 if dataset[1][0] == 50 else 1)
    assert os.waitpid(child, 0)[1] == 0
