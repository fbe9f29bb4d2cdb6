"""From flags to packing plans."""

import argparse
import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from coredata.datasets import CachedSchedule, CachedWindows, Schedule
from coredata.tools.data_arguments import add_data_arguments, datasets_from_args
from coredata.tools.data_packing import packing_from_args
from coredata.tools.data_words import in_flags
from coredata.tools.main import main
from coredata.tools.packing_flags import ROW_PACKERS
from coredata.varlen import PACKERS, pack

BASE = ("--tokenizer-type", "ByteTokenizer", "--split", "1", "--train-iters", "3")
BASE += ("--global-batch-size", "12", "--eval-iters", "0")
VARLEN = (*BASE, "--use-varlen-dataset", "--seq-length", "16")


def packing(parse, chats, *flags):
    args = parse("--data-path", chats, *flags)
    return packing_from_args(args, datasets_from_args(args)[0])


def test_flags_and_packers_have_one_list():
    assert ROW_PACKERS == PACKERS
    parser = add_data_arguments(argparse.ArgumentParser())
    assert parser.parse_args([]).max_segments_per_row == 64


def test_schedules(parse, chats):
    found = packing(parse, chats, *VARLEN)
    assert isinstance(found, CachedSchedule)
    assert found.schedule == Schedule(12, 17, 1, 1, 1, None)
    found = packing(parse, chats, *VARLEN, "--data-parallel-size", 2, "--micro-batch-size", 3)
    assert found.schedule == Schedule(12, 17, 2, 3, 1, None)
    more = ("--context-parallel-size", 2, "--max-seqlen-per-dp-cp-rank", 100)
    more += ("--microbatch-group-size-per-virtual-pipeline-stage", 3)
    assert packing(parse, chats, *VARLEN, *more).schedule == Schedule(12, 100, 1, 1, 2, 3)
    # A sample of 17 tokens is padded to 20, and each of two ranks holds a half.
    assert packing(parse, chats, *VARLEN, *more[:2]).schedule.max_seqlen_per_dp_cp_rank == 10
    sft = (*BASE, "--sft", "--seq-length", "16", "--sequence-packing-scheduler", "dp_balanced")
    assert packing(parse, chats, *sft).schedule.limit == 16
    odd = packing(parse, chats, *sft, "--seq-length", 17, "--context-parallel-size", 2)
    assert odd.schedule.max_seqlen_per_dp_cp_rank == 9
    batch = VARLEN.index("--global-batch-size")
    small = (*VARLEN[:batch], *VARLEN[batch + 2 :], "--micro-batch-size", 2)
    assert packing(parse, chats, *small, "--data-parallel-size", 3).schedule.global_batch_size == 6


@pytest.mark.parametrize("packer", PACKERS)
def test_rows(parse, chats, packer):
    flags = (*VARLEN, "--sequence-packing-scheduler", packer)
    found = packing(parse, chats, *flags)
    assert isinstance(found, CachedWindows)
    settings = (found.limit, found.window, found.packer, found.max_segments, found.overflow)
    assert settings == (17, 8192, packer, 64, "error")
    more = ("--packing-window", 9, "--max-segments-per-row", 3, "--max-seqlen-per-dp-cp-rank", 20)
    found = packing(parse, chats, *flags, *more, "--context-parallel-size", 2)
    assert (found.limit, found.window, found.max_segments) == (40, 9, 3)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--varlen-sbhd-validation",), r"nothing is packed, so there is no plan to make"),
        (
            ("--sequence-packing-scheduler", "default_dynamic_cp"),
            r"default_dynamic_cp chooses context-parallel sizes step by step.* dp_balanced, or",
        ),
        (("--dynamic-context-parallel",), r"default_dynamic_cp chooses context-parallel sizes"),
        (
            ("--dataloader-type", "cyclic"),
            r"--dataloader-type cyclic: plans are made beforehand for the order of single alone",
        ),
        (("--rampup-batch-size", "4", "4", "8"), r"--rampup-batch-size: dp_balanced packs global"),
        (("--packing-window", "0"), r"--packing-window 0: need at least 1"),
        (("--max-segments-per-row", "0"), r"--max-segments-per-row 0: need at least 1"),
        (("--max-seqlen-per-dp-cp-rank", "-1"), r"--max-seqlen-per-dp-cp-rank -1: need at least"),
        (
            ("--max-seqlen-per-dp-cp-rank", "3"),
            r"padded length of \d+; a pack holds 1 to 3 tokens \(--max-seqlen-per-dp-cp-rank 3 × "
            r"--context-parallel-size 1\). Cut it, or use --max-seqlen-per-dp-cp-rank \d+ or more",
        ),
        (
            ("--max-seqlen-per-dp-cp-rank", "3", "--sequence-packing-scheduler", "first_fit"),
            r"more than the 3 of a row; .* Give a --max-seqlen-per-dp-cp-rank with which a row "
            r"holds \d+, or a shorter --seq-length",
        ),
        (
            ("--data-parallel-size", "12", "--max-seqlen-per-dp-cp-rank", "99")
            + ("--microbatch-group-size-per-virtual-pipeline-stage", "2"),
            r"12 samples are not enough: .* or a smaller --max-seqlen-per-dp-cp-rank",
        ),
        (
            ("--data-parallel-size", "5"),
            r"--global-batch-size 12: need a multiple of --micro-batch-size × --data-parallel-size "
            r"= 1 × 5, such as 40",
        ),
    ],
)
def test_what_has_no_plan(flags, message, chats, capsys, tmp_path):
    run = ("--data-path", chats, *VARLEN, "--data-cache-path", str(tmp_path / "cache"), *flags)
    assert main(["prepare-cache", *run, "--packing-plan"]) == 2
    told = capsys.readouterr().err
    assert re.search(message, told), told
    assert not re.search(r"max_seqlen|overflow|data_parallel_size", told)


def test_no_hint_is_lost_on_the_way():
    with pytest.raises(ValueError, match="overflow='split'") as refused:
        pack(np.array([3, 9]), 4)
    assert "--max-seqlen-per-dp-cp-rank with which a row holds 9," in in_flags(str(refused.value))


def test_the_page_tells_of_lengths_and_plans(chats, capsys, tmp_path):
    run = ("--data-path", chats, *VARLEN, "--data-cache-path", str(tmp_path / "cache"))
    assert main(["prepare-cache", *run, "--packing-plan"]) == 0
    told = capsys.readouterr().out
    assert re.search(rf"built +train +lengths of {chats} +36 samples, [\d.]+ k?B", told)
    rows = r"36 samples, \d+ rows, [\d.]+% full, [\d.]+ k?B"
    assert re.search(rf"built +train +packing of {chats} +{rows}", told)
    assert main(["prepare-cache", *run, "--json"]) == 0
    names = [cache["name"] for cache in json.loads(capsys.readouterr().out)["caches"]]
    assert not [name for name in names if name.startswith(("packing", "lengths"))]


def test_what_inspect_and_verify_say_of_them(chats, capsys, tmp_path):
    cache = str(tmp_path / "cache")
    run = ("--data-path", "1", chats, "1", chats, *VARLEN, "--data-cache-path", cache)
    assert main(["prepare-cache", *run, "--packing-plan"]) == 0
    assert capsys.readouterr().out.count("lengths of") == 1, "two parts share them"
    packer = ("--sequence-packing-scheduler", "first_fit", "--packing-window", "9")
    assert main(["prepare-cache", *run, "--packing-plan", *packer]) == 0
    capsys.readouterr()
    assert main(["inspect", cache]) == 0
    out = capsys.readouterr().out
    assert "    rows: 12\n    multiple: 1\n    of: chats.jsonl\n" in out
    assert "    order: dp_balanced\n    global_batch_size: 12\n" in out
    assert "    window: 9\n    packer: first_fit\n    max_segments: 64\n" in out
    assert "    of: a blend of 2\n" in out
    assert re.search(r"    bytes: [\d.]+ kB\n", out)
    assert f"    datasets: {chats}, {chats}\n" in out
    assert main(["verify", cache]) == 0
    assert "3 arrays, " in capsys.readouterr().out
    (array,) = (tmp_path / "cache").glob("*-PackLengths-train-padded_lengths.npy")
    array.write_bytes(array.read_bytes()[:-8] + bytes(8))
    assert main(["verify", cache]) == 1
    assert "padded_lengths.npy has" in " ".join(capsys.readouterr().out.split())


def test_a_tokenizer_without_a_chat_template(chats, capsys, tmp_path):
    tokenizer = files("coredata.text") / "assets" / "demo_tokenizer.json"
    run = ("--data-path", chats, *VARLEN[2:], "--tokenizer-model", str(tokenizer))
    assert main(["view", "--sample", "0", *run]) == 2
    told = capsys.readouterr().err
    assert "Give --chat-template PATH, a .jinja file or the directory of a model that has" in told
    assert "coredata.text" not in told


def test_one_parquet_file_has_a_plan_to_keep(chats, capsys, tmp_path):
    rows = [json.loads(line) for line in Path(chats).read_text().splitlines()]
    path = str(tmp_path / "chats.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    run = ("--data-path", path, *VARLEN, "--data-cache-path", str(tmp_path / "cache"))
    assert main(["prepare-cache", *run]) == 2
    assert "or add --packing-plan to keep which samples share a pack" in capsys.readouterr().err
    assert main(["prepare-cache", *run, "--packing-plan"]) == 0
    assert f"packing of {path}" in capsys.readouterr().out
