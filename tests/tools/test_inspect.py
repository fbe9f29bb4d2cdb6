"""`coredata inspect` on token files, runs, caches and states."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata import BatchLoader, MegatronPretrainingSampler
from coredata.formats import IndexedDatasetBuilder
from coredata.text import ByteTokenizer
from coredata.tools.inspect_prefix import count_ids, length_facts, prefix_facts
from coredata.tools.main import main
from coredata.tools.opened_data import open_data

RUN = (
    "--seq-length 16 --train-iters 20 --micro-batch-size 2 --global-batch-size 4 --eval-iters 1 "
    "--split 80,20,0 --tokenizer-type ByteTokenizer"
)


@pytest.fixture
def files(tmp_path):
    tokenizer = ByteTokenizer()
    for name, count in (("code", 12), ("prose", 40)):
        with IndexedDatasetBuilder(str(tmp_path / name), np.uint16) as builder:
            for k in range(count):
                ids = [*tokenizer.encode(f"{name} {k}: " + "word " * (k % 4)), tokenizer.eod]
                builder.add_document(ids, [len(ids)])
            builder.finalize()
    return tmp_path


def coredata_inspect(*more):
    return main(["inspect", *map(str, more)])


def found(capsys, *more):
    assert coredata_inspect(*more, "--json") == 0
    return json.loads(capsys.readouterr().out)["found"]


def flags(files, *more):
    data = ["--data-path", "0.2", str(files / "code"), "0.8", str(files / "prose")]
    return [*data, *RUN.split(), *map(str, more)]


def test_a_token_file(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    assert coredata_inspect(files / "prose", "--tokenizer-type", "ByteTokenizer") == 0
    out = capsys.readouterr().out
    assert "40 documents, 40 sequences, " in out
    assert " tokens of uint16" in out
    assert "none is empty" in out
    assert "█" in out
    assert "    eos (256): 40 (5.479%)\n" in out
    assert "sequences end in\n    eos (256): 40 (100.000%)" in out
    assert all(len(line) <= 70 for line in out.splitlines())


@pytest.mark.parametrize(
    ("empty", "text"), [(0, "none is empty"), (1, "1 is empty"), (2, "2 are empty")]
)
def test_empty_sequences(empty, text, tmp_path, capsys):
    with IndexedDatasetBuilder(str(tmp_path / "some"), np.uint16) as builder:
        for length in (3, *[0] * empty):
            builder.add_document([5] * length, [length])
        builder.finalize()
    assert coredata_inspect(tmp_path / "some") == 0
    assert f"mean {3 / (1 + empty):.1f}; {text}\n" in capsys.readouterr().out


def test_a_token_file_for_scripts(files, capsys):
    (facts,) = found(capsys, files / "code.idx")
    assert (facts["kind"], facts["documents"], facts["dtype"]) == ("prefix", 12, "uint16")
    assert facts["tokens"] == sum(low for low in [facts["tokens"]])
    assert sum(count for _, _, count in facts["lengths"]["histogram"]) == 12
    assert facts["last"] == [{"name": "", "id": 256, "count": 12, "share": 1.0}]
    assert facts["special"] == []


def test_an_empty_token_file(tmp_path, capsys):
    with IndexedDatasetBuilder(str(tmp_path / "none"), np.uint16) as builder:
        builder.finalize()
    (facts,) = found(capsys, tmp_path / "none", "--tokenizer-type", "ByteTokenizer")
    assert (facts["lengths"], facts["scanned"], facts["last"]) == (None, 0, [])
    assert coredata_inspect(tmp_path / "none") == 0


def test_special_tokens_are_counted_in_part_of_a_large_file(files, monkeypatch):
    monkeypatch.setattr("coredata.tools.inspect_prefix._BLOCK", 50)
    prefix = str(files / "prose")
    whole = prefix_facts(prefix, ByteTokenizer())
    assert whole.scanned == whole.tokens
    assert {one.id: one.count for one in whole.special}[256] == 40
    part = prefix_facts(prefix, ByteTokenizer(), 200)
    assert part.scanned <= 200
    assert 0 < {one.id: one.share for one in part.special}[256] < 1


@given(st.lists(st.integers(0, 70), min_size=1, max_size=30))
def test_lengths_equal_numpy(values):
    facts = length_facts(np.array(values, np.int32))
    assert (facts.least, facts.most, facts.empty) == (min(values), max(values), values.count(0))
    assert facts.mean == pytest.approx(np.mean(values))
    assert facts.quantiles["50%"] in values
    for low, high, count in facts.histogram:
        assert count == sum(low <= value <= high for value in values)
    assert sum(count for _, _, count in facts.histogram) == len(values)


@given(st.lists(st.integers(0, 9)), st.sets(st.integers(0, 9), min_size=1))
def test_counts_equal_numpy(ids, wanted):
    wanted = sorted(wanted)
    slots = np.full(max(wanted) + 1, -1, np.int64)
    slots[wanted] = np.arange(len(wanted))
    counts = np.zeros(len(wanted), np.int64)
    count_ids(np.array(ids, np.uint16), slots, counts)
    assert counts.tolist() == [ids.count(number) for number in wanted]


def test_what_a_run_reads(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    (facts,) = found(capsys, *flags(files))
    train, valid = facts["splits"]
    assert (train["name"], valid["name"]) == ("train", "valid")
    code = train["datasets"][0]
    assert code["path"] == str(files / "code")
    assert code["most_repeats"] >= code["epochs"] > 0
    memory = facts["index_memory"]
    assert [one["path"] for one in memory[:2]] == ["blend", str(files / "code")]
    assert set(memory[1]["arrays"]) == {"document_index", "sample_index", "shuffle_index"}
    assert facts["index_bytes"] == sum(one["total"] for one in memory) > 0
    assert coredata_inspect(*flags(files)) == 0
    out = capsys.readouterr().out
    assert "epochs  repeats ≤" in out
    assert "index arrays: " in out
    assert all(len(line) <= 120 for line in out.splitlines())


def test_a_run_without_the_samples_of_a_skip_list(files, capsys):
    (before,) = found(capsys, *flags(files))
    (after,) = found(capsys, *flags(files, "--skip-samples", "0-7,20"))
    train, whole = after["splits"][0], before["splits"][0]
    assert train["samples"] == whole["samples"] - 9
    assert sum(part["drawn"] for part in train["datasets"]) == train["samples"]
    assert sum(part["achieved_share"] for part in train["datasets"]) == pytest.approx(1)
    for part, old in zip(train["datasets"], whole["datasets"], strict=True):
        assert part["epochs"] == pytest.approx(old["epochs"] * part["drawn"] / old["drawn"])
    assert after["splits"][1:] == before["splits"][1:]
    (single,) = found(capsys, "--data-path", files / "prose", *RUN.split(), "--skip-samples", "3,5")
    assert single["splits"][0]["datasets"][0]["drawn"] == single["splits"][0]["samples"]
    for text, message in [
        ("rubbish", "--skip-samples: skip list, line 1: 'rubbish' is neither"),
        ("9000", "skip: sample 9000 is to be skipped, but the dataset has"),
    ]:
        assert coredata_inspect(*flags(files, "--skip-samples", text)) == 2
        assert message in capsys.readouterr().err
    assert coredata_inspect(files / "code", "--skip-samples", "1") == 2
    assert "--skip-samples is of a run's samples" in capsys.readouterr().err


def test_one_is_not_written_as_several(tmp_path, capsys):
    with IndexedDatasetBuilder(str(tmp_path / "one"), np.uint16) as builder:
        builder.add_document([7], [1])
        builder.finalize()
    assert coredata_inspect(tmp_path / "one") == 0
    assert "  1 document, 1 sequence, 1 token of uint16" in capsys.readouterr().out


def test_paths_are_whole_where_nothing_limits_the_lines(files, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert coredata_inspect(*flags(files)) == 0
    out = capsys.readouterr().out
    assert f"train {files / 'prose'}: document_index" in out
    assert "…" not in out


def test_caches(files, capsys):
    given = flags(files, "--data-cache-path", files / "cache")
    assert coredata_inspect(*given) == 0
    capsys.readouterr()
    caches = found(capsys, files / "cache")
    assert {one["kind"] for one in caches} == {"cache"}
    assert {one["class"] for one in caches} == {"BlendedDataset", "GPTDataset"}
    assert all(one["complete"] for one in caches)
    (files / "cache" / f"{caches[0]['key']}-description.txt").unlink()
    broken = found(capsys, files / "cache")
    assert [one["complete"] for one in broken].count(False) == 1
    assert coredata_inspect(files / "cache") == 0
    out = capsys.readouterr().out
    assert "is missing; it is written last" in out or "…" in out
    assert f"{len(caches)} caches" in out


def test_states(files, capsys):
    import argparse

    from coredata.tools.data_arguments import add_data_arguments

    args = add_data_arguments(argparse.ArgumentParser()).parse_args(flags(files))
    train = open_data(args).split("train")
    with BatchLoader(train, MegatronPretrainingSampler(len(train), 0, 4, 0, 1)) as loader:
        next(loader)
        state = loader.state_dict()
    (files / "one.json").write_text(json.dumps(state))
    (files / "several.json").write_text(json.dumps({"train": state, "valid": state}))
    (one,) = found(capsys, files / "one.json")
    assert (one["kind"], one["consumed_samples"]) == ("state", 4)
    assert [one["name"] for one in found(capsys, files / "several.json")] == ["train", "valid"]
    assert coredata_inspect(files / "one.json") == 0
    out = capsys.readouterr().out
    assert "consumed_samples: 4 of 8" in out
    assert "order: sequential" in out
    assert "class: BlendedDataset" in out


def test_what_there_is_not(files, capsys):
    assert coredata_inspect(files / "cod") == 2
    assert "there is " in capsys.readouterr().err
    (files / "x.json").write_text("{}")
    assert coredata_inspect(files / "x.json") == 2
    assert "holds no loader state: []" in capsys.readouterr().err
    assert coredata_inspect(files / "code", "--scan-tokens", "0") == 2
    assert "--scan-tokens 0: need at least 1" in capsys.readouterr().err
    (files / "code.bin").write_bytes(b"")
    assert coredata_inspect(files / "code") == 2
    assert "the .bin file was cut off" in capsys.readouterr().err


def test_a_file_that_stands_twice_in_a_blend(files, capsys, monkeypatch):
    once = ("--data-path", "0.4", files / "code", "0.6", files / "prose", *RUN.split())
    assert found(capsys, *once)[0]["notes"] == []
    twice = ("--data-path", "0.2", files / "code", "0.6", files / "prose", "0.2")
    for again in (files / "code", f"{files}/../{files.name}/code"):
        notes = found(capsys, *twice, again, *RUN.split())[0]["notes"]
        assert [note.split(":")[0] for note in notes] == ["train", "valid"]
        assert f"{files}/code stands twice: the same samples are drawn twice." in notes[0]
    monkeypatch.setenv("COLUMNS", "80")
    assert coredata_inspect(*twice, files / "code", *RUN.split()) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "stands twice: the same samples are drawn twice." in out
