"""`coredata verify` as scripts and people use it."""

import errno
import functools
import io
import json
import os
import re
import time

import numpy as np
import pytest

from coredata.datasets import GPTDataset, GPTDatasetConfig
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split
from coredata.text import ByteTokenizer
from coredata.tools import output, verify_run
from coredata.tools.main import main
from coredata.tools.verify_page import VerifyPage
from coredata.tools.verify_run import Checked


def write(prefix, documents, dtype=np.uint16):
    with IndexedDatasetBuilder(str(prefix), dtype) as builder:
        for document in documents:
            builder.add_document(document, [len(document)])
        builder.finalize()


@pytest.fixture
def corpus(tmp_path):
    """A directory with a pair, a pair of another dtype further down, and a cache."""
    (tmp_path / "data" / "more").mkdir(parents=True)
    prefix = tmp_path / "data" / "corpus"
    write(prefix, [[1, 2, 9], [3, 4, 5, 9], [9], [6, 7, 8, 9]] * 4)
    write(tmp_path / "data" / "more" / "wide", [[70_000, 9]], np.int32)
    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=4,
        blend=([str(prefix)], None),
        split="1",
        tokenizer=ByteTokenizer(),
        path_to_cache=str(tmp_path / "data" / "cache"),
    )
    source = GPTDataset.build_low_level_dataset(str(prefix), config)
    GPTDataset(source, str(prefix), np.arange(16, dtype=np.int32), 20, Split.train, config)
    return tmp_path / "data"


def verify(*flags):
    return main(["verify", *map(str, flags)])


def test_a_directory_with_all_that_is_in_it(corpus, capsys):
    assert verify(corpus) == 0
    out = capsys.readouterr().out
    assert re.search(r"ok +.*data/corpus\n +uint16, 16 documents, 16 sequences, 48 tokens", out)
    assert re.search(r"ok +.*more/wide\n +int32, 1 document, 1 sequence, 2 tokens", out)
    assert re.search(r"ok +cache GPTDataset train [0-9a-f]{12}… in", out)
    flat = " ".join(out.split())
    assert re.search(r"3 arrays, \d\.\d kB, checksums, compared with the data", flat)
    assert re.search(r"note several dtypes: int32 in .*wide, uint16 in .*corpus\. A blend", flat)
    assert re.search(r"All 3 are sound: \d+\.\d s", flat)
    assert "\x1b" not in out


def test_json(corpus, capsys):
    assert verify(corpus, "--vocab-size", "100", "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["sound"], data["scanned_bytes"]) == (False, 48 * 2 + 2 * 4)
    faults = {one["name"].rsplit("/")[-1]: one["faults"] for one in data["checked"]}
    assert faults["corpus"] == []
    (fault,) = faults["wide"]
    assert fault["kind"] == "TokenError"
    assert "document 0, sequence 0, token 0: the id 70000 is not in a vocab" in fault["text"]
    assert [one["sound"] for one in data["checked"]] == [True, False, True]


@pytest.mark.parametrize("suffix", ["", ".bin", ".idx"])
def test_a_pair_by_prefix_or_file(corpus, suffix, capsys):
    assert verify(corpus / f"corpus{suffix}", "--vocab-size", "10") == 0
    assert "The only one is sound" in capsys.readouterr().out


def test_faults_name_file_and_document(corpus, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert verify(corpus / "corpus", "--vocab-size", "9") == 1
    out = capsys.readouterr().out
    flat = " ".join(out.split())
    assert "TokenError:" in flat
    assert "document 0, sequence 0, token 2: the id 9 is not in a vocabulary of 9 (0 to 8)" in flat
    assert "16 ids of the file are outside it" in flat
    assert "1 of 1 is damaged." in flat
    assert max(len(line) for line in out.splitlines() if "/" not in line) <= 60


@pytest.mark.parametrize("half", ["bin", "idx"])
def test_half_a_pair(corpus, half, capsys):
    (corpus / f"corpus.{half}").unlink()
    assert verify(corpus) == 1
    text = rf"corpus\.{half} does not exist, although .*corpus\.(bin|idx) does; a dataset is a pair"
    assert re.search(text, " ".join(capsys.readouterr().out.split()))


def test_a_truncated_bin(corpus, capsys):
    data = (corpus / "corpus.bin").read_bytes()
    (corpus / "corpus.bin").write_bytes(data[:-6])
    assert verify(corpus / "corpus", "--repair", "--eod", "9") == 1
    flat = " ".join(capsys.readouterr().out.split())
    assert "the last sequence ends at byte 96, but" in flat
    assert re.search(r"not repaired: .*the lengths add up to 96 bytes, but .* has 90", flat)


def test_an_unknown_prefix_names_what_is_near(corpus, capsys):
    assert verify(corpus / "corpse") == 2
    error = capsys.readouterr().err
    assert re.search(r"corpse\.bin and .*corpse\.idx do not exist, and .* is no directory", error)
    assert re.search(r"there is .*data/corpus\n", error)
    assert verify(corpus / "zzzzzzz") == 2
    assert "give a path without .bin and .idx" in capsys.readouterr().err
    (corpus / "empty").mkdir()
    assert verify(corpus / "empty") == 2
    assert "empty holds no .bin/.idx pairs and no caches" in capsys.readouterr().err


def test_repair_of_indices(corpus, capsys):
    whole = (corpus / "corpus.idx").read_bytes()
    (corpus / "corpus.idx").write_bytes(whole[:-20])
    assert verify(corpus / "corpus") == 1
    assert verify(corpus / "corpus", "--repair") == 0
    assert (corpus / "corpus.idx").read_bytes() == whole
    assert (corpus / "corpus.idx.before-repair").read_bytes() == whole[:-20]
    flat = " ".join(capsys.readouterr().out.split())
    assert re.search(r"repaired .*corpus .*repaired: .*the old one is .*before-repair", flat)
    assert "The only one is sound (1 repaired)" in flat
    (corpus / "corpus.idx").unlink()
    flags = ("--repair", "--eod", "9", "--dtype", "uint16", "--vocab-size", "10")
    assert verify(corpus / "corpus", *flags) == 0
    assert (corpus / "corpus.idx").read_bytes() == whole
    assert verify(corpus / "corpus", *flags) == 0


def test_repair_leaves_tokens_alone(corpus, capsys):
    assert verify(corpus / "corpus", "--repair", "--vocab-size", "5") == 1
    flat = " ".join(capsys.readouterr().out.split())
    assert "not repaired: the index is sound, and tokens are not changed by a repair" in flat


def test_repair_lets_caches_be_built_again(corpus, capsys):
    (array,) = (corpus / "cache").glob("*shuffle_index.npy")
    array.write_bytes(array.read_bytes()[:-1])
    assert verify(corpus / "cache") == 1
    assert verify(corpus / "cache", "--repair") == 0
    flat = " ".join(capsys.readouterr().out.split())
    assert "so that it is built again on first use" in flat
    assert "1 damaged cache was set aside, to be built again on first use." in flat
    assert {path.suffix for path in (corpus / "cache").iterdir()} == {".damaged"}
    assert verify(corpus / "cache") == 0
    flat = " ".join(capsys.readouterr().out.split())
    assert "holds 6 files *.damaged of caches that a repair set aside" in flat
    assert "There is nothing left to check." in flat
    assert verify(corpus) == 0
    assert "Both are sound" in capsys.readouterr().out


def test_repair_keeps_what_was_set_aside_before(corpus, capsys):
    before = {path.name: path.read_bytes() for path in (corpus / "cache").iterdir()}
    for _ in range(2):
        for name, data in before.items():
            (corpus / "cache" / name).write_bytes(data[: len(data) - name.endswith(".npy")])
        assert verify(corpus / "cache", "--repair") == 0
        assert verify(corpus / "cache") == 0
    names = {path.name for path in (corpus / "cache").iterdir()}
    assert names == {f"{name}.damaged{more}" for name in before for more in ("", "-2")}


def test_repair_leaves_a_cache_whose_build_may_be_going_on(corpus, capsys):
    (description,) = (corpus / "cache").glob("*description.txt")
    description.unlink()
    before = sorted((corpus / "cache").iterdir())
    assert verify(corpus / "cache", "--repair") == 1
    flat = " ".join(capsys.readouterr().out.split())
    assert "not repaired: without a description it is not used, and is built again when" in flat
    assert "1 of 1 is damaged; 0 repaired, 1 not." in flat
    assert sorted((corpus / "cache").iterdir()) == before
    assert verify(corpus / "cache") == 1


@pytest.mark.parametrize("content", [b"", b"not an index at all" * 9])
def test_repair_goes_on_after_what_it_cannot_mend(corpus, content, capsys):
    (corpus / "a.bin").write_bytes((corpus / "corpus.bin").read_bytes())
    (corpus / "a.idx").write_bytes(content)
    whole = (corpus / "corpus.idx").read_bytes()
    (corpus / "corpus.idx").write_bytes(whole[:-20])
    assert verify(corpus, "--repair") == 1
    flat = " ".join(capsys.readouterr().out.split())
    assert re.search(r"not repaired: \S+a\.idx does not say what it describes\.", flat)
    assert "move that file away and give --repair --eod ID --dtype TYPE" in flat
    assert (corpus / "corpus.idx").read_bytes() == whole
    assert "1 of 4 is damaged; 1 repaired, 1 not." in flat
    (corpus / "a.idx").rename(corpus / "a.old")
    assert verify(corpus, "--repair", "--eod", "9", "--dtype", "uint16") == 0
    assert (corpus / "a.idx").read_bytes() == whole


def test_a_missing_path_does_not_keep_the_others_from_being_checked(corpus, capsys):
    data = (corpus / "corpus.bin").read_bytes()
    (corpus / "corpus.bin").write_bytes(data[:-6])
    assert verify(corpus / "none", corpus / "corpus", "--json") == 2
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert [one["sound"] for one in found["checked"]] == [False]
    assert "none.bin and " in found["missing"][0]
    assert "none.bin and " in captured.err


def test_a_pair_that_cannot_be_read_is_not_called_damaged(corpus, capsys, monkeypatch):
    def unreadable(prefix, *rest, **options):
        if prefix.endswith("corpus"):
            raise PermissionError(13, "Permission denied", prefix)
        return look(prefix, *rest, **options)

    look = verify_run.find_pair_faults
    monkeypatch.setattr(verify_run, "find_pair_faults", unreadable)
    assert verify(corpus) == 2
    flat = " ".join(capsys.readouterr().out.split())
    assert "could not be checked: [Errno 13] Permission denied" in flat
    assert "1 of 3 could not be checked." in flat
    assert "damaged" not in flat
    assert verify(corpus, "--json") == 2
    found = json.loads(capsys.readouterr().out)
    (pair,) = (one for one in found["checked"] if one["name"].endswith("/corpus"))
    assert (pair["sound"], pair["faults"]) == (False, [])
    assert "Permission denied" in pair["unread"]


def closed(monkeypatch, *names):
    """Directories of these names cannot be listed."""
    listed = os.scandir

    def scandir(path):
        if os.path.basename(path) in names:
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_directory_that_cannot_be_read_is_named(corpus, capsys, monkeypatch):
    closed(monkeypatch, "more")
    assert verify(corpus) == 2
    told = capsys.readouterr()
    assert f"{corpus}/more could not be looked through: Permission denied" in told.err
    assert "Both are sound" in told.out
    assert "But not all that was named could be looked at." in " ".join(told.out.split())
    assert verify(corpus / "more", "--json") == 2
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["sound"], found["checked"], found["missing"]) == (False, [], [])
    assert found["unread"] == [f"{corpus}/more could not be looked through: Permission denied"]
    assert "holds no" not in told.err
    assert main(["inspect", str(corpus)]) == 2
    assert f"{corpus}/more could not be looked through" in capsys.readouterr().err


def test_a_directory_whose_files_may_not_be_opened(corpus, capsys, monkeypatch):
    allowed = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not str(path).endswith("more") and allowed(path, mode)
    )
    assert verify(corpus) == 2
    assert "its files may not be opened" in capsys.readouterr().err


def test_a_cache_that_may_not_be_read_is_not_called_damaged(corpus, capsys, monkeypatch):
    allowed = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not str(path).endswith(".npy") and allowed(path, mode)
    )
    assert verify(corpus) == 2
    flat = " ".join(capsys.readouterr().out.split())
    assert re.search(r"UNREAD cache GPTDataset train .* may not be read", flat)
    assert "damaged" not in flat


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_checksums_that_cannot_be_written_do_not_make_data_damaged(
    error, corpus, capsys, monkeypatch
):
    def refuse(prefix):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(verify_run, "write_block_checksums", refuse)
    assert verify(corpus / "corpus", "--write-checksums") == 2
    flat = " ".join(capsys.readouterr().out.split())
    assert flat.startswith("ok ")
    told = f"checksums could not be written to {corpus}/corpus.crc: [Errno {error}]"
    assert told in flat.replace("- ", "-")
    assert "1 of 1 could not be written to." in flat
    assert "damaged" not in flat


def test_a_repair_that_cannot_be_written(corpus, capsys, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    whole = (corpus / "corpus.idx").read_bytes()
    (corpus / "corpus.idx").write_bytes(whole[:-20])
    monkeypatch.setattr(verify_run, "repair_index", refuse)
    assert verify(corpus / "corpus", "--repair") == 2
    flat = " ".join(capsys.readouterr().out.split())
    assert "the repair could not be written: [Errno 28] No space left on device" in flat
    assert "1 of 1 is damaged." in flat


def test_checksums_beside_a_pair(corpus, capsys):
    assert verify(corpus / "corpus", "--write-checksums") == 0
    assert "checksums written" in " ".join(capsys.readouterr().out.split())
    assert verify(corpus / "corpus") == 0
    assert "checksums compared" in " ".join(capsys.readouterr().out.split())
    data = bytearray((corpus / "corpus.bin").read_bytes())
    data[40] ^= 1
    (corpus / "corpus.bin").write_bytes(data)
    assert verify(corpus / "corpus") == 1
    flat = " ".join(capsys.readouterr().out.split())
    assert "ChecksumError:" in flat
    assert "corpus.bin: block 0 (bytes 0 to 96) does not have the checksum" in flat
    assert "It holds tokens of document 0, sequence 0, to document 15, sequence 15" in flat
    (corpus / "corpus.crc").write_bytes(b"nothing")
    assert verify(corpus / "corpus") == 1
    assert "ChecksumFileError:" in " ".join(capsys.readouterr().out.split())


def test_checksums_of_what_is_damaged_are_not_written(corpus, capsys):
    wide = corpus / "more" / "wide"
    assert verify(wide, "--vocab-size", "100", "--write-checksums") == 1
    assert "checksums written" not in capsys.readouterr().out
    assert not list(wide.parent.glob("*.crc"))
    assert verify(wide, "--write-checksums") == 0
    assert len(list(wide.parent.glob("*.crc"))) == 1


def test_checksums_are_not_written_over_those_that_tell_of_a_fault(corpus, capsys):
    assert verify(corpus / "corpus", "--write-checksums") == 0
    old, whole = (corpus / "corpus.crc").read_bytes(), (corpus / "corpus.bin").read_bytes()
    (corpus / "corpus.bin").write_bytes(whole[:40] + b"\7" + whole[41:])
    assert verify(corpus / "corpus", "--write-checksums") == 1
    flat = " ".join(capsys.readouterr().out.split())
    assert "ChecksumError:" in flat
    assert re.search(r"remove that file and give --write-checksums; it was kept as it was", flat)
    assert (corpus / "corpus.crc").read_bytes() == old
    (corpus / "corpus.bin").write_bytes(whole)
    assert verify(corpus / "corpus", "--write-checksums") == 0
    assert "checksums compared" in " ".join(capsys.readouterr().out.split())


def test_checksums_of_another_index_are_renewed_once_they_are_removed(corpus, capsys):
    whole = (corpus / "corpus.idx").read_bytes()
    (corpus / "corpus.idx").write_bytes(whole[:-4] + b"\0\0\0\1")
    assert verify(corpus / "corpus") == 1
    (corpus / "corpus.idx").write_bytes(whole)
    assert verify(corpus / "corpus", "--write-checksums") == 0
    (corpus / "corpus.idx").write_bytes(whole[:-20])
    capsys.readouterr()
    old = (corpus / "corpus.crc").read_bytes()
    changed = bytearray(old)
    changed[-1] ^= 1
    (corpus / "corpus.crc").write_bytes(changed)
    assert verify(corpus / "corpus", "--repair", "--write-checksums") == 1
    flat = " ".join(capsys.readouterr().out.split())
    assert "or repaired, after" in flat
    (corpus / "corpus.crc").unlink()
    assert verify(corpus / "corpus", "--write-checksums") == 0
    assert (corpus / "corpus.crc").read_bytes() == old
    assert verify(corpus / "corpus") == 0


def test_progress_of_what_takes_long(corpus, capsys, monkeypatch):
    soon = functools.partial(output.progress, delay=0.0, every=0.01)
    monkeypatch.setattr(output, "progress", soon)
    slow = verify_run.find_pair_faults

    def later(*args, **options):
        time.sleep(0.1)
        return slow(*args, **options)

    monkeypatch.setattr(verify_run, "find_pair_faults", later)
    assert verify(corpus, "--vocab-size", "80000") == 0
    assert re.search(r"0 of 3 checked, 0 B of tokens looked through", capsys.readouterr().err)


def test_files_of_killed_builds_are_noted(corpus, capsys):
    (description,) = (corpus / "cache").glob("*description.txt")
    (corpus / "cache" / f".{description.name}.0123456789ab.tmp").touch()
    assert verify(corpus / "cache") == 0
    assert "is left from a build that was killed" in " ".join(capsys.readouterr().out.split())


def test_flags_that_make_no_sense(corpus, capsys):
    for flags, text in [
        (("--vocab-size", "0"), "--vocab-size 0: need at least 1, such as 50257"),
        (("--eod", "3"), "--eod is for repairs; add --repair, or leave it out"),
        (("--dtype", "int32"), "--dtype is for repairs; add --repair, or leave it out"),
    ]:
        assert verify(corpus, *flags) == 2
        assert text in capsys.readouterr().err


def test_pairs_behind_urls(capsys):
    write("memory://verify-urls/corpus", [[1, 2, 9], [3, 9]])
    assert verify("memory://verify-urls/corpus", "--vocab-size", "10") == 0
    assert "uint16, 2 documents" in capsys.readouterr().out
    assert verify("memory://verify-urls", "--vocab-size", "9") == 1
    flat = " ".join(capsys.readouterr().out.split())
    assert "document 0, sequence 0, token 2: the id 9 is not in a vocabulary of 9" in flat
    assert verify("memory://verify-urls/none") == 2
    assert "none.bin and memory://verify-urls/none.idx do not exist" in capsys.readouterr().err
    assert verify("memory://verify-urls/corpus", "--vocab-size", "9", "--repair") == 1
    assert "only local files are repaired" in " ".join(capsys.readouterr().out.split())


def ended(*kinds):
    """The verdict over pairs and caches that are sound ("pair"), mended ("pair!") or broken."""
    found = [
        Checked(
            "a/b",
            kind.strip("!?"),
            {},
            () if kind.isalpha() else (("Fault", "text"),),
            "done" if "!" in kind else "",
            "not" if "?" in kind else "",
        )
        for kind in kinds
    ]
    stream = io.StringIO()
    VerifyPage(stream).end(found, [], 0)
    return re.sub(r"\d+\.\d s", "T", stream.getvalue())


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (["pair"], "The only one is sound: T.\n"),
        (["pair", "cache"], "Both are sound: T.\n"),
        (["pair"] * 3, "All 3 are sound: T.\n"),
        (["pair!", "pair"], "Both are sound (1 repaired): T.\n"),
        (["cache!"], "1 damaged cache was set aside, to be built again on first use.\n"),
        (
            ["cache!", "pair"],
            "1 damaged cache was set aside, to be built again on first use. The other 1 is sound: "
            "T.\n",
        ),
        (
            ["cache!", "cache!", "pair!", "pair"],
            "2 damaged caches were set aside, to be built again on first use. The other 2 are "
            "sound (1 repaired): T.\n",
        ),
        (["pair?", "pair", "pair!"], "1 of 3 is damaged; 1 repaired, 1 not.\n"),
        ([], "There is nothing left to check.\n"),
    ],
)
def test_the_verdict(kinds, text, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert ended(*kinds) == text
