"""Checksums beside the output: asked for, they are there and right, and nothing else differs."""

import pytest

from coredata.formats import verify_block_checksums
from coredata.storage import ChecksumError

ROWS = [{"text": f"row {row} " * (row % 9), "more": ["a", "b" * row]} for row in range(200)]
KEYS = ("text", "more")


@pytest.fixture
def inputs(corpus):
    return corpus.write_rows("in.jsonl", ROWS)


@pytest.mark.parametrize("shard_bytes", [None, 1000], ids=["one shard", "merged"])
def test_the_pairs_are_the_same_with_and_without(corpus, inputs, shard_bytes):
    corpus.run(inputs, json_keys=KEYS, shard_bytes=shard_bytes, append_eod=True)
    without = corpus.output_bytes()
    corpus.run(inputs, json_keys=KEYS, shard_bytes=shard_bytes, append_eod=True, checksums=True)
    found = corpus.output_bytes()
    assert {name for name in found if name not in without} == {
        f"_{key}_document.crc" for key in KEYS
    }
    assert {name: found[name] for name in without} == without
    assert len(without) == 4
    for key in KEYS:
        checked = verify_block_checksums(f"{corpus.prefix}_{key}_document")
        assert checked.size == len(found[f"_{key}_document.bin"]) > 0


def test_a_flipped_byte_is_found(corpus, inputs):
    corpus.run(inputs, checksums=True)
    path = f"{corpus.prefix}_text_document.bin"
    with open(path, "r+b") as file:
        file.seek(3000)
        byte = file.read(1)
        file.seek(3000)
        file.write(bytes([byte[0] ^ 4]))
    with pytest.raises(ChecksumError, match=r"block 1 \(bytes 2048 to 4096\)"):
        verify_block_checksums(f"{corpus.prefix}_text_document")


def test_checksums_of_an_earlier_output_do_not_stay(corpus, inputs):
    corpus.run(inputs, checksums=True)
    assert "_text_document.crc" in corpus.output_bytes()
    corpus.run(inputs)
    assert sorted(corpus.output_bytes()) == ["_text_document.bin", "_text_document.idx"]


def test_a_run_that_was_stopped_may_go_on_with_checksums(corpus, inputs, monkeypatch):
    def refused(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("coredata.preprocess.run.GrowingOutput.finish", refused)
    with pytest.raises(KeyboardInterrupt):
        corpus.run(inputs, shard_bytes=1000)
    monkeypatch.undo()
    report = corpus.run(inputs, shard_bytes=1000, checksums=True)
    assert report.shards_reused == report.shards > 1
    assert verify_block_checksums(f"{corpus.prefix}_text_document").size


@pytest.mark.parametrize(
    "stop",
    ["growing_output.publish_partial", "growing_output.verify_indexed", "publishing.remove"],
)
def test_a_run_that_was_killed_at_the_end_leaves_nothing_hidden(corpus, inputs, monkeypatch, stop):
    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed

    room = "preprocess" if stop.startswith("growing") else "formats"
    with monkeypatch.context() as patch:
        # Nobody tidies up after a process that is killed.
        patch.setattr("coredata.storage.atomic._LocalFile.abort", lambda self: None)
        patch.setattr(f"coredata.{room}.{stop}", killed)
        with pytest.raises(Killed):
            corpus.run(inputs, shard_bytes=1000, checksums=True)
    corpus.run(inputs, shard_bytes=1000, checksums=True)
    assert sorted(path.name for path in corpus.directory.iterdir()) == [
        "in.jsonl",
        "out_text_document.bin",
        "out_text_document.crc",
        "out_text_document.idx",
    ]
    assert verify_block_checksums(f"{corpus.prefix}_text_document").size
