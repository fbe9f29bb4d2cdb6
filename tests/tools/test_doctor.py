import json
import os
import resource
import shutil
import sys

import pytest

from coredata.tools import doctor_checks as checks
from coredata.tools.main import main


@pytest.fixture(autouse=True)
def nothing_imported(monkeypatch):
    """That packages can be imported is held by test_doctor_imports.py; it takes seconds."""
    monkeypatch.setattr(checks, "import_failures", lambda packages: {})


def test_a_sound_machine(capsys, tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"x")
    assert main(["doctor", str(tmp_path / "x.parquet"), "--data-cache-path", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok     coredata: ")
    assert lines[-1] == (
        "No fault found in what was looked at: this machine, and names, headers and sizes of local "
        "files."
    )
    for what in ("numpy", "numba", "fsspec", "tokenizers", "extras", "kernels", "open files"):
        assert sum(line[7:].startswith(f"{what}: ") for line in lines) == 1


def test_json_and_exit_code(capsys, monkeypatch):
    monkeypatch.setattr(checks, "installed", lambda package: None)
    assert main(["doctor", "s3://bucket/x.zst", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    found = [finding for finding in told["findings"] if finding["what"] == "s3://bucket/x.zst"]
    assert [(finding["found"], finding["remedy"]) for finding in found] == [
        ("needs s3fs", "pip install 'coredata[s3]'"),
        ("needs zstandard", "pip install 'coredata[zstd]'"),
    ]
    assert told["faults"] >= 2


def test_what_every_kind_of_target_needs(monkeypatch):
    monkeypatch.setattr(checks, "installed", lambda package: None)
    for target, remedy in (
        ("msc://p/x", "pip install 'coredata[msc]'"),
        ("gs://b/x", "pip install gcsfs"),
        ("abfs://b/x", "pip install adlfs"),
        ("https://h/x", "pip install aiohttp"),
        ("hf://d/x", "pip install huggingface_hub"),
        ("rows.parquet", "pip install 'coredata[parquet]'"),
        ("chat_template.jinja", "pip install 'coredata[chat]'"),
    ):
        assert [found.remedy for found in checks.check_targets([target])] == [remedy]
    assert list(checks.check_targets(["a/b"])) == []
    assert next(checks.check_targets(["odd://x"])).found == "scheme odd is fsspec's to know"
    monkeypatch.setattr(checks, "installed", lambda package: "1")
    (found,) = checks.check_targets(["s3://b"])
    assert found.found == "s3fs is there; the bucket is not contacted"
    (found,) = checks.check_targets(["https://b"])
    assert found.found == "aiohttp is there; the server is not contacted"
    (found,) = checks.check_targets(["x.zst"])
    assert found.found == "zstandard is there"


def test_versions(monkeypatch):
    monkeypatch.setattr(checks, "required_versions", lambda: {"numpy": "1.26", "numba": "0.60"})
    have = {"numpy": "1.25.3", "numba": None}
    monkeypatch.setattr(checks, "installed", have.get)
    found = {finding.what: finding for finding in checks.check_versions()}
    assert found["numpy"].found == "1.25.3, older than 1.26"
    assert found["numpy"].remedy == "pip install 'numpy>=1.26'"
    assert (found["numba"].level, found["numba"].found) == ("fault", "not installed")
    have.update(numpy="1.26", numba="0.61.0rc1")
    assert {finding.level for finding in checks.check_versions()} == {"ok"}


def test_required_versions_are_those_of_the_distribution():
    assert set(checks.required_versions()) == {"numpy", "numba", "fsspec", "tokenizers"}


def test_missing_extras_are_no_fault(monkeypatch):
    monkeypatch.setattr(checks, "installed", lambda package: "1" if package == "jax" else None)
    found = list(checks.check_extras())
    assert found[0].found == "jax"
    assert {finding.level for finding in found[1:]} == {"note"}
    parquet = next(finding for finding in found if finding.what == "extra parquet")
    assert parquet.remedy == "pip install 'coredata[parquet]' for parquet files"


def test_compiled_kernels(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (found,) = checks.check_compiled()
    assert (found.level, found.remedy) == ("note", "`coredata selfcheck` compiles them once")
    (tmp_path / "a.nbc").write_bytes(b"x" * 2000)
    (found,) = checks.check_compiled()
    assert found.level == "ok"
    assert found.found.startswith(f"1 compiled (2.0 kB) in {tmp_path}, numba ")
    monkeypatch.setattr(checks, "filesystem_type", lambda place: "nfs4")
    (found,) = checks.check_compiled()
    assert found.remedy.startswith("set NUMBA_CACHE_DIR to a local directory if many nodes")
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    (found,) = checks.check_compiled()
    assert (found.level, found.found.endswith("not writable")) == ("fault", True)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    (found,) = checks.check_compiled()
    assert (found.level, found.remedy) == ("fault", "unset NUMBA_DISABLE_JIT")


def test_open_files(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 12))
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, 4096))
    (found,) = checks.check_open_files(0)
    assert found == checks.Finding("ok", "open files", "limit 1,024")
    (found,) = checks.check_open_files(50)
    assert (found.level, found.found) == ("ok", "limit 1,024, about 614 needed for 50 prefixes")
    (found,) = checks.check_open_files(300)
    assert found.found == "limit 1,024, about 3,364 needed for 300 prefixes"
    assert found.remedy == "ulimit -n 4096, or merge small prefixes"
    found = next(checks.check_open_files(1000))
    assert "ulimit -n 16384 (the hard limit is 4,096: ask an administrator)" in found.remedy
    monkeypatch.setattr(sys, "version_info", (3, 13))
    assert next(checks.check_open_files(1000)).level == "ok"


def test_memory_maps():
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
        limit = int(file.read())
    found = list(checks.check_open_files(limit))[-1]
    assert (found.level, found.what) == ("fault", "memory maps")
    assert found.remedy.endswith("or --no-mmap-bin-files")


def test_cache_directories(monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "filesystem_type", lambda path: "lustre")
    (found,) = checks.check_cache_directory(str(tmp_path / "not" / "yet"))
    assert (found.level, found.remedy) == ("ok", 'cache_scope="shared", the default')
    assert found.found.startswith("lustre, shared by nodes; ")
    monkeypatch.setattr(checks, "filesystem_type", lambda path: "ext4")
    (found,) = checks.check_cache_directory(str(tmp_path))
    assert found.remedy == 'with several nodes prepare it on each, and use cache_scope="node"'
    (tmp_path / "file").touch()
    (found,) = checks.check_cache_directory(str(tmp_path / "file" / "below"))
    assert (found.level, found.found) == ("fault", f"{tmp_path / 'file'} is no directory")
    (found,) = checks.check_cache_directory("s3://bucket/cache")
    assert (found.level, found.found) == ("note", "behind a URL")
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    (found,) = checks.check_cache_directory(str(tmp_path))
    assert (found.level, found.found) == ("fault", f"{tmp_path} is not writable")


@pytest.mark.parametrize(
    ("path", "kind"), [("/data/x", "nfs4"), ("/data/a b/x", "ext4"), ("/database", "overlay")]
)
def test_file_systems(tmp_path, path, kind):
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "over / overlay rw 0 0\nh:/d /data nfs4 rw 0 0\n/dev/sda /data/a\\040b ext4 rw 0 0\n"
    )
    assert checks.filesystem_type(path, str(mounts)) == kind
    assert checks.filesystem_type(path, str(tmp_path / "none")) == ""


def test_prefixes_are_counted(capsys, monkeypatch, write_pair):
    a, b = write_pair("a"), write_pair("b")
    monkeypatch.setattr(shutil, "disk_usage", None)
    monkeypatch.setattr(sys, "version_info", (3, 12))
    assert main(["doctor", "--data-path", "1", a, "1", b, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert any("86 needed for 2 prefixes" in finding["found"] for finding in told["findings"])


def test_files_that_are_missing_or_broken(capsys, write_pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("sound", "cut", "hollow", "half", "other"):
        write_pair(name)
    os.truncate("cut.bin", 50)
    os.truncate("hollow.idx", 0)
    os.remove("half.bin")
    os.remove("other.idx")
    open("none.jsonl", "w").close()
    names = ["sound", "cut", "hollow", "half", "other", "none.jsonl", "nope/", "nope.bin"]
    assert main(["doctor", *names, "--data-path", "nope2", "sound", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["findings"]
    found = {one["what"]: one for one in told if one["what"] in (*names, "nope2")}
    assert found.pop("sound")["found"] == (
        "40 sequences, header and sizes fit; `coredata verify` reads the rest"
    )
    for name, text in (
        ("cut", "but cut.bin has 50 bytes"),
        ("hollow", "it is empty (0 bytes)"),
        ("half", "half.bin is missing, half.idx is there"),
        ("other", "other.idx is missing, other.bin is there"),
        ("none.jsonl", "is empty (0 bytes)"),
        ("nope/", "does not exist"),
        ("nope.bin", "does not exist"),
        ("nope2", "does not exist"),
    ):
        one = found.pop(name)
        assert text in one["found"]
        assert (one["level"], bool(one["remedy"])) == ("fault", True)
    assert not found


def test_a_pasted_script(capsys, write_pair):
    words = ["doctor", "--data-path", write_pair("a"), "--split", "1", "--seq-length", "32"]
    words += ["--tokenizer-model", "tokenizer.json", "--train-iters", "100", "--eval-iters", "1"]
    assert main(words) == 0
    assert capsys.readouterr().err == ""


def test_a_file_that_may_not_be_read(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("{}\n")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK and real(path, mode))
    assert main(["doctor", "rows.jsonl"]) == 1
    assert "rows.jsonl: may not be read → change its permissions" in capsys.readouterr().out


def test_patterns_are_passed_over(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for pattern in ("*.jsonl", "row?.jsonl", "row[12].jsonl"):
        assert main(["doctor", "--data-path", pattern, "--json"]) == 0
        findings = json.loads(capsys.readouterr().out)["findings"]
        assert pattern not in [one["what"] for one in findings]


def test_what_is_named_twice_is_told_once(capsys, write_pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pair("sound")
    assert main(["doctor", "sound", ".", "--data-path", "sound", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [one["what"] for one in findings].count("sound") == 1
    (here,) = (one["found"] for one in findings if one["what"] == ".")
    assert here == "a directory; its files are not looked at"


def test_a_directory_of_kernels_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    listed = os.scandir

    def scandir(path):
        if os.path.basename(path) == "closed":
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (finding,) = checks.check_compiled()
    assert finding.level == "note"
    assert f"{tmp_path}/closed could not be looked through" in finding.found
