import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from coredata.datasets import (
    ReadWindows,
    ScheduleWindows,
    VarlenDataset,
    blended_index,
    masked_index,
    rows,
)
from coredata.datasets.gpt_index_plan import GPTIndexPlan
from coredata.datasets.index_cache import IndexCache
from coredata.formats import IndexedDatasetBuilder
from coredata.tools import prepare_cache_packing, prepare_cache_run
from coredata.tools.data_arguments import datasets_from_args
from coredata.tools.data_packing import packing_from_args
from coredata.tools.main import main
from coredata.varlen import PackWindows

NULL = ("--tokenizer-type", "NullTokenizer", "--vocab-size", "1000")
RUN = ("--seq-length", "16", "--global-batch-size", "4", "--train-iters", "10")
RUN += ("--eval-interval", "5", "--eval-iters", "1")


@pytest.fixture
def builds(monkeypatch):
    """Counts everything that is built or stored, of whatever kind."""
    counted = []

    def count(owner, name):
        real = getattr(owner, name)

        def counting(*arguments, **options):
            counted.append(name)
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)

    count(IndexCache, "store")
    count(GPTIndexPlan, "build")
    count(blended_index, "build_index")
    count(masked_index, "build_sentence_map")
    count(rows, "index_lines")
    return counted


@pytest.fixture
def prepare(capsys):
    """Runs the command; gives what it prints with --json, and its notes."""

    def prepare(*flags):
        assert main(["prepare-cache", *map(str, flags), "--json"]) == 0
        told = capsys.readouterr()
        return json.loads(told.out), "".join(_notes(told.err))

    return prepare


def _notes(text):
    """Lines on standard error, but for progress of what took long."""
    return [line for line in text.splitlines(keepends=True) if " · " not in line]


def test_after_it_a_start_builds_nothing(write_pair, parse, prepare, builds, tmp_path):
    flags = ("--data-path", "0.3", write_pair("a"), "0.7", write_pair("b", 60), *NULL, *RUN)
    flags += ("--split", "8,1,1", "--data-cache-path", tmp_path / "cache")
    found, notes = prepare(*flags)
    assert notes == ""
    assert found["built"] == len(found["caches"]) == 9
    assert {cache["state"] for cache in found["caches"]} == {"built"}
    assert found["sizes"]["train"] == 40
    assert (
        found["lengths"] == {"train": 40, "valid": 12, "test": 4} or found["lengths"]["train"] > 0
    )
    on_disk = sum(path.stat().st_size for path in (tmp_path / "cache").iterdir())
    assert found["bytes"] == on_disk
    assert builds
    builds.clear()
    reference = [
        sample["tokens"]
        for sample in map(datasets_from_args(parse(*flags))[0].__getitem__, range(40))
    ]
    for more in (
        (),
        ("--dataloader-fast-cache-load",),
        ("--dataloader-defer-npy-index-mmap",),
        ("--dataloader-fast-cache-load", "--dataloader-defer-npy-index-mmap"),
        ("--num-dataset-builder-threads", 4, "--num-workers", 8, "--no-mmap-bin-files"),
    ):
        train, valid, test = datasets_from_args(parse(*flags, *more))
        for sample, tokens in enumerate(reference):
            np.testing.assert_array_equal(train[sample]["tokens"], tokens)
        assert valid[0]["tokens"].shape == test[0]["tokens"].shape == (16,)
    assert builds == []


def test_a_second_time_all_are_hits(write_pair, prepare, builds, tmp_path):
    flags = ("--data-path", write_pair("a"), write_pair("b"), *NULL, *RUN)
    flags += ("--data-cache-path", tmp_path / "cache", "--split", "1,1,0")
    assert prepare(*flags)[0]["built"] == 6
    builds.clear()
    again, _ = prepare(*flags)
    assert again["built"] == 0
    assert {cache["state"] for cache in again["caches"]} == {"hit"}
    assert builds == []
    array = next((tmp_path / "cache").glob("*-GPTDataset-train-document_index.npy"))
    array.write_bytes(array.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="damaged and is built again"):
        assert prepare(*flags)[0]["built"] == 1
    more, _ = prepare(*flags, "--seed", 5)
    assert more["built"] == 6


def test_separate_validation_sets_and_splits(write_pair, parse, prepare, builds, tmp_path):
    (tmp_path / "blend.json").write_text(
        json.dumps(
            {
                "train": ["1", write_pair("a"), "2", write_pair("b")],
                "valid": [write_pair("c"), write_pair("d")],
            }
        )
    )
    flags = ("--per-split-data-args-path", tmp_path / "blend.json", *NULL, *RUN)
    flags += ("--data-cache-path", tmp_path / "cache", "--multiple-validation-sets")
    flags += ("--full-validation",)
    found, _ = prepare(*flags)
    assert len(found["lengths"]["valid"]) == 2
    assert found["lengths"]["test"] is None
    assert found["sizes"]["valid"] is None
    builds.clear()
    datasets_from_args(parse(*flags, "--dataloader-fast-cache-load"))
    assert builds == []


def test_cache_flags_of_the_run_are_passed_over(write_pair, prepare, tmp_path):
    flags = ("--data-path", write_pair("a", 1100), *NULL, *RUN)
    flags += ("--data-cache-path", tmp_path / "cache")
    found, notes = prepare(
        *flags, "--dataloader-fast-cache-load", "--dataloader-defer-npy-index-mmap"
    )
    assert found["built"] == 3
    for flag in ("--dataloader-fast-cache-load", "--dataloader-defer-npy-index-mmap"):
        assert f"{flag} is for the run that uses the cache, and is passed over here" in notes
    assert "--split is not given: 969, 30, 1, as in the reference" in notes


def test_a_pasted_launch_script(write_pair, parse, capsys, tmp_path):
    data = f"--data-path {write_pair('a')} --data-cache-path {tmp_path / 'cache'} --split 9,1,0"
    data += " --tokenizer-type NullTokenizer --vocab-size 1000 --seq-length 16"
    script = f"--num-layers 24 --bf16 --lr 3e-4 {data} --tensor-model-parallel-size 2"
    script += " --micro-batch-size 1 --train-samples 40 --eval-iters 1 --use-flash-attn"
    words = ["prepare-cache", *script.split(), "--prepare-cache-world-size", "8"]
    assert main(words) == 2
    assert (
        "unknown: --num-layers 24, --bf16, --lr 3e-4, --use-flash-attn" in capsys.readouterr().err
    )
    assert main([*words, "--ignore-unknown-flags"]) == 0
    told = capsys.readouterr()
    assert "passed over, as not about data: --num-layers 24, --bf16, --lr 3e-4, --use" in told.err
    assert "sizes from --train-samples, 4 a step, 4 data-parallel ranks" in told.out
    assert "train  40 samples asked: " in told.out
    assert "test   4 samples asked: no dataset" in told.out
    assert "2 built, 0 hit" in told.out


def test_made_up_tokens_have_an_index(parse, prepare, builds, tmp_path):
    flags = ("--mock-data", *NULL, "--seq-length", 512, "--num-samples", 5, 0, 0)
    flags += ("--data-cache-path", tmp_path / "cache")
    assert prepare(*flags)[0]["caches"][0]["name"] == "made-up data"
    builds.clear()
    datasets_from_args(parse(*flags))
    assert builds == []


def test_conversations(parse, prepare, builds, chats, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(Path(chats).read_text())
    flags = ("--sft", "--tokenizer-type", "ByteTokenizer", *RUN, "--split", "1,1,0")
    flags += ("--data-cache-path", tmp_path / "cache", "--data-path", "1", chats, "1", other)
    found, _ = prepare(*flags)
    states = [(cache["name"].split(" ")[0], cache["state"]) for cache in found["caches"]]
    assert states.count(("rows", "built")) == 2
    assert states.count(("blend", "built")) == 2
    assert sum(state == "nothing to keep" for _, state in states) == 4
    builds.clear()
    assert datasets_from_args(parse(*flags))[0][0]["tokens"].shape == (16,)
    assert builds == []
    again, _ = prepare(*flags)
    assert again["built"] == 0


@pytest.fixture
def planned(monkeypatch, builds):
    """Counts every window that is planned and every row tokenised for it, as well."""

    def count(cls, name):
        real = getattr(cls, name)

        def counting(*arguments):
            builds.append(cls.__name__)
            return real(*arguments)

        monkeypatch.setattr(cls, name, counting)

    for cls in (PackWindows, ReadWindows, ScheduleWindows):
        count(cls, "plan")
    count(VarlenDataset, "padded_lengths")
    return builds


@pytest.fixture
def talks(tmp_path):
    """Two files of conversations of many lengths."""
    paths = []
    for name, count in (("a", 12), ("b", 7)):
        paths.append(str(tmp_path / f"{name}.jsonl"))
        rows = (
            {
                "messages": [
                    {"role": "user", "content": "q" * (i % 4)},
                    {"role": "assistant", "content": "a" * (1 + 5 * i % 9)},
                ]
            }
            for i in range(count)
        )
        Path(paths[-1]).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return paths


PACK = ("--sequence-packing-scheduler", "best_fit_decreasing")
PACKED = ("--tokenizer-type", "ByteTokenizer", *RUN[2:], "--seq-length", "24", "--split", "1,1,0")


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("scheduler", [(), PACK])
@pytest.mark.parametrize("kind", ["--use-varlen-dataset", "--sft"])
def test_after_it_a_start_plans_nothing(
    parse, prepare, planned, talks, kind, scheduler, files, tmp_path
):
    if kind == "--sft" and not scheduler:
        scheduler = ("--sequence-packing-scheduler", "dp_balanced")
    flags = (kind, *PACKED, *scheduler, "--packing-window", "8", "--data-path")
    flags += (talks[0],) if files == 1 else ("2", talks[0], "1", talks[1])

    def plans(cache, *more):
        cached = () if cache is None else ("--data-cache-path", tmp_path / cache)
        args = parse(*flags, *cached, *more)
        found = [packing_from_args(args, dataset) for dataset in datasets_from_args(args)[:2]]
        return [[one.plan(window) for window in range(len(one))] for one in found]

    wanted = plans(None)
    sizes = [len(dataset) for dataset in datasets_from_args(parse(*flags))[:2]]
    assert [len(split) for split in wanted] == [
        -(-size // 8) if scheduler == PACK else size // 4 for size in sizes
    ]
    cache = ("--data-cache-path", tmp_path / "cache")
    found, _ = prepare(*flags, *cache, "--packing-plan")
    told = [(c["name"].split(" ")[0], c["split"], c["state"]) for c in found["caches"]]
    assert told.count(("packing", "train", "built")) == 1
    assert told.count(("packing", "valid", "built")) == 1
    lengths = 0 if kind == "--sft" else 2 * files
    assert sum(name == "lengths" for name, _, _ in told) == lengths
    assert {c["samples"] for c in found["caches"] if c["name"].startswith("packing")} == {
        found["lengths"]["train"],
        found["lengths"]["valid"],
    }
    for split, windows in zip(("train", "valid"), wanted, strict=True):
        (cached,) = (
            one
            for one in found["caches"]
            if one["name"].startswith("packing") and one["split"] == split
        )
        rows = sum(map(len, windows))
        full = sum(plan.tokens for plan in windows) / (rows * windows[0].limit)
        assert (cached["rows"], cached["fill"]) == (rows, pytest.approx(full))
    on_disk = sum(path.stat().st_size for path in (tmp_path / "cache").iterdir())
    assert found["bytes"] == on_disk
    assert planned
    planned.clear()
    for more in ((), ("--dataloader-fast-cache-load",)):
        assert plans("cache", *more) == wanted
    again, _ = prepare(*flags, *cache, "--packing-plan")
    assert again["built"] == 0
    assert planned == []


def test_plans_depend_on_the_run(parse, prepare, planned, talks, tmp_path):
    flags = ("--use-varlen-dataset", *PACKED, "--data-cache-path", tmp_path / "cache")
    flags += ("--data-path", talks[0], "--packing-plan")
    prepare(*flags)
    for more in (
        ("--max-seqlen-per-dp-cp-rank", 40),
        ("--data-parallel-size", 2),
        ("--data-parallel-size", 2, "--micro-batch-size", 2),
        ("--microbatch-group-size-per-virtual-pipeline-stage", 2),
        ("--global-batch-size", 8),
        PACK,
        (*PACK, "--packing-window", 7),
        (*PACK, "--max-segments-per-row", 2),
        ("--skip-samples", "3"),
    ):
        planned.clear()
        states = [(c["name"], c["split"], c["state"]) for c in prepare(*flags, *more)[0]["caches"]]
        assert (f"packing of {talks[0]}", "train", "built") in states, more
        assert (f"lengths of {talks[0]}", "train", "hit") in states
        assert "VarlenDataset" not in planned, "rows are tokenised once for all plans"
    wider = prepare(*flags, "--context-parallel-size", 4)[0]["caches"]
    assert [c["state"] for c in wider if c["name"].startswith("lengths")] == ["built"] * 2
    skipping = datasets_from_args(parse(*flags[:-1], "--skip-samples", "3"))[0]
    planned.clear()
    packing_from_args(parse(*flags[:-1]), skipping).open()
    assert planned == []


def test_damaged_plans_are_made_again(prepare, talks, tmp_path):
    flags = ("--use-varlen-dataset", *PACKED, "--data-cache-path", tmp_path / "cache")
    flags += ("--data-path", talks[0], "--packing-plan")
    prepare(*flags)
    (array,) = (tmp_path / "cache").glob("*-PackPlans-train-segments.npy")
    good = array.read_bytes()
    array.write_bytes(good[:-3] + b"xyz")
    with pytest.warns(UserWarning, match="damaged and is built again"):
        assert prepare(*flags)[0]["built"] == 1
    assert array.read_bytes() == good


def test_progress_of_plans(talks, monkeypatch, tmp_path):
    looks = []

    @contextlib.contextmanager
    def shown(look):
        looks.append(look())
        yield
        looks.append(look())

    monkeypatch.setattr(prepare_cache_packing, "progress", shown)
    flags = ("--use-varlen-dataset", *PACKED, "--data-path", talks[0], "--packing-plan")
    assert main(["prepare-cache", *flags, "--data-cache-path", str(tmp_path / "cache")]) == 0
    assert looks == ["looking at rows", "3 of 3 windows planned"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--mock-data",), r"--data-cache-path is missing: the directory to prepare"),
        (
            ("--mock-data", "--sft", "--data-cache-path", "c"),
            r"nothing to build: --mock-data with --sft makes samples up as they are asked for",
        ),
        (
            ("--mock-data", "--use-varlen-dataset", "--data-cache-path", "c"),
            r"nothing to build: --mock-data with --use-varlen-dataset",
        ),
        (
            ("--data-path", "own/parquet.parquet", "--sft", "--data-cache-path", "c")
            + ("--tokenizer-type", "ByteTokenizer"),
            r"nothing to build: parquet files hold an index of their rows themselves",
        ),
        (
            ("--mock-data", "--data-cache-path", "c", "--prepare-cache-world-size", "0"),
            r"--prepare-cache-world-size 0: need at least 1",
        ),
        (
            ("--mock-data", "--data-cache-path", "c", "--packing-plan"),
            r"--packing-plan: nothing is packed, so there is no plan to make: that needs --use-v",
        ),
    ],
)
def test_refusals(flags, message, capsys, tmp_path, monkeypatch):
    import re

    monkeypatch.chdir(tmp_path)
    null = () if "ByteTokenizer" in flags else NULL
    assert main(["prepare-cache", *flags, *null, *RUN]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_sentences(parse, prepare, builds, tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"##{i}" for i in range(95))]
    content = {
        "version": "1.0",
        "added_tokens": [
            {"id": i, "content": name, "special": True, "single_word": False, "lstrip": False}
            | {"rstrip": False, "normalized": False}
            for i, name in enumerate(vocabulary[:5])
        ],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {name: i for i, name in enumerate(vocabulary)},
        },
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    prefix = str(tmp_path / "sentences")
    rng = np.random.default_rng(0)
    with IndexedDatasetBuilder(prefix, np.uint16) as builder:
        for _ in range(30):
            for length in rng.integers(3, 9, 4):
                builder.add_item(rng.integers(5, 100, length))
            builder.end_document()
        builder.finalize()
    flags = ("--dataset", "bert", "--data-path", prefix, "--split", "8,1,1", "--seq-length", 32)
    flags += ("--tokenizer-model", tmp_path / "tokenizer.json", "--num-samples", 20, 2, 2)
    flags += ("--data-cache-path", tmp_path / "cache")
    assert prepare(*flags)[0]["built"] == 3
    builds.clear()
    assert datasets_from_args(parse(*flags))[0][0]["text"].shape == (32,)
    datasets_from_args(parse(*flags, "--dataloader-fast-cache-load"))
    assert builds == []


def test_datasets_are_built_by_several_threads(write_pair, monkeypatch, tmp_path):
    names = set()
    together = threading.Barrier(2)
    real = GPTIndexPlan.build

    def build(self):
        names.add(threading.current_thread().name)
        if len(names) <= 2 and not together.broken:
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait(timeout=20)
        return real(self)

    monkeypatch.setattr(GPTIndexPlan, "build", build)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    flags = ("--data-path", write_pair("a"), write_pair("b"), *NULL, "--seq-length", 16)
    flags += ("--split", "1", "--num-samples", 20, 0, 0, "--data-cache-path", tmp_path / "cache")
    assert main(["prepare-cache", *map(str, flags)]) == 0
    assert len(names) == 2


def test_progress_of_what_takes_long(write_pair, monkeypatch, tmp_path, capsys):
    looks = []

    @contextlib.contextmanager
    def shown(look):
        looks.append(look())
        yield
        looks.append(look())

    monkeypatch.setattr(prepare_cache_run, "progress", shown)
    flags = ("--data-path", write_pair("a"), *NULL, *RUN, "--split", "1,1,1")
    assert main(["prepare-cache", *flags, "--data-cache-path", str(tmp_path / "cache")]) == 0
    assert looks == ["0 of 3 datasets", "3 of 3 datasets"]


@pytest.mark.slow
def test_ctrl_c_ends_it_with_one_line(tmp_path):
    fifo = tmp_path / "blend"
    os.mkfifo(fifo)
    words = ["prepare-cache", "--data-args-path", str(fifo), "--data-cache-path", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "coredata", *words, *RUN, *NULL],
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    # Opened for writing only once the command has opened it for reading: it is at work then.
    with open(fifo, "w", encoding="utf-8"):
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told == "coredata prepare-cache: interrupted\n"


def test_a_cache_behind_a_url(write_pair, parse, prepare, builds):
    flags = ("--data-path", write_pair("a"), *NULL, *RUN, "--split", "1,1,1")
    flags += ("--data-cache-path", "memory://prepared/cache")
    found, _ = prepare(*flags)
    assert found["built"] == 3
    assert found["bytes"] > 0
    builds.clear()
    assert prepare(*flags)[0]["built"] == 0
    assert builds == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--skip-samples", "5-3"), "--skip-samples: .*5-3.* is no file either"),
        (("--skip-samples", "nofile.txt"), "--skip-samples: .*'nofile.txt' is no file either"),
        (
            ("--skip-samples", "2,40"),
            "--skip-samples: sample 40 is to be skipped, but training has 40 samples, numbered 0",
        ),
        (
            ("--train-iters", "999999999999999999"),
            "--train-iters 999999999999999999: 999,999,999,999,999,999 are too many; a computer",
        ),
        (
            ("--train-iters", "274877906945"),
            "--train-iters 274877906945 --global-batch-size 4 --eval-iters 1: 1,099,511,627,780 "
            "are too many; a computer holds the index of at most 1,099,511,627,776 samples",
        ),
        (("--data-cache-path", "file"), "--data-cache-path file: file is a file, not a directory"),
        (("--data-cache-path", "file/below"), "file/below: file is a file, not a directory"),
    ],
)
def test_values_that_training_would_refuse(
    flags, message, write_pair, builds, capsys, tmp_path, monkeypatch
):
    import re

    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    words = ["--data-path", "1", write_pair("a"), *NULL, *RUN, "--split", "1,1,1"]
    assert main(["prepare-cache", *words, "--data-cache-path", "cache", *flags]) == 2
    told = capsys.readouterr().err
    assert re.search(message, told)
    assert told.count("\n") == 1
    assert builds == []


def test_a_skip_list_that_fits(write_pair, prepare, tmp_path):
    flags = ("--data-path", "1", write_pair("a"), *NULL, *RUN, "--split", "1,1,1")
    assert prepare(*flags, "--data-cache-path", tmp_path / "cache", "--skip-samples", "38-39")


def test_a_run_that_ends_early_is_noted(write_pair, capsys, tmp_path):
    pair = write_pair("a")
    flags = (*NULL, *RUN, "--split", "1,0,0", "--eval-iters", "0", "--seq-length", "32")
    flags += ("--data-cache-path", str(tmp_path / "cache"))
    assert main(["prepare-cache", "--data-path", pair, pair, *flags, "--train-iters", "999"]) == 0
    told = capsys.readouterr().out
    assert "of the 3,996 training samples are there: the run ends after about" in told
    assert main(["prepare-cache", "--data-path", pair, *flags]) == 0
    assert "note:" not in capsys.readouterr().out
