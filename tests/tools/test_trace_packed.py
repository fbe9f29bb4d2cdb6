"""`coredata trace` where samples are packed into rows."""

import json

import numpy as np
import pytest

from coredata.tools.data_arguments import datasets_from_args
from coredata.tools.data_packing import packing_from_args
from coredata.tools.main import main
from coredata.varlen import PACKERS
from coredata.varlen.plan import concatenate

BASE = ("--tokenizer-type", "ByteTokenizer", "--split", "1", "--train-iters", "8")
BASE += ("--global-batch-size", "2", "--eval-iters", "0", "--seq-length", "96")
ROOM = ("--packing-window", "7", "--max-seqlen-per-dp-cp-rank", "128")


@pytest.fixture
def rows(tmp_path):
    """Conversations of unequal length."""
    path = tmp_path / "rows.jsonl"
    texts = [{"messages": turns(k)} for k in range(20)]
    path.write_text("".join(json.dumps(text) + "\n" for text in texts))
    return str(path)


def turns(k):
    user = {"role": "user", "content": "a" * (1 + 7 * k % 13)}
    return [user, {"role": "assistant", "content": "b" * (1 + 5 * k % 17)}]


def trace(capsys, *flags):
    assert main(["trace", *map(str, flags), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("skip", [(), ("--skip-samples", "1,4-5")])
def test_steps_hold_the_samples_of_their_rows(parse, rows, packer, skip, capsys):
    given = ("--data-path", rows, *BASE, *ROOM, "--use-varlen-dataset", *skip)
    given += ("--sequence-packing-scheduler", packer)
    args = parse(*given)
    dataset = datasets_from_args(args)[0]
    windows = packing_from_args(args, dataset)
    whole = concatenate([windows.plan(k) for k in range(len(windows))])
    steps = len(whole) // 2
    assert steps >= 2
    where = {}
    for step in range(steps):
        kept = [whole[row].samples for row in (2 * step, 2 * step + 1)]
        numbers = np.concatenate(kept)
        if skip:
            numbers = dataset.original(numbers)
        found = trace(capsys, *given, "--step", step)
        assert {part["sample"] for part in found["parts"]} == set(numbers.tolist())
        assert {part["row"] for part in found["parts"]} == {2 * step, 2 * step + 1}
        assert (found["rows_before"], found["rows_after"]) == (2 * step, 2 * step + 2)
        assert "consumed_before" not in found
        where |= {number: step for number in numbers.tolist()}
        for row, own in zip((2 * step, 2 * step + 1), kept, strict=True):
            named = set((dataset.original(own) if skip else own).tolist())
            assert {p["sample"] for p in found["parts"] if p["row"] == row} == named
    assert any(where[number] != number // 2 for number in where)
    for number in (0, 3, 9):
        found = trace(capsys, *given, "--sample", number)
        assert [one["step"] for one in found["steps"]] == [where[number]]
        document = found["parts"][0]["document"]
        seen = trace(capsys, *given, "--document", document)["sightings"]
        assert {(one["step"], one["sample"]) for one in seen} >= {(where[number], number)}
        fewer = trace(capsys, *given, "--document", document, "--until-step", 1)["sightings"]
        assert fewer == [one for one in seen if one["step"] < 1]
    assert main(["trace", *given, "--step", str(steps)]) == 2
    assert f"numbered 0 to {steps - 1}" in capsys.readouterr().err


def test_a_page_of_rows(rows, capsys):
    given = ("--data-path", rows, *BASE, *ROOM, "--use-varlen-dataset")
    given += ("--sequence-packing-scheduler", "first_fit")
    assert main(["trace", *given, "--step", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("step 1 (iteration 2): rows 2 to 3, packed by first_fit\n")
    assert "row 2, sample " in out


def test_packs_of_global_batches_are_plain_batches(rows, capsys):
    given = ("--data-path", rows, *BASE, "--use-varlen-dataset")
    found = trace(capsys, *given, "--sequence-packing-scheduler", "dp_balanced", "--step", 2)
    assert {part["sample"] for part in found["parts"]} == {4, 5}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--sft",), "--sft samples hold several conversations, which packing puts into different"),
        (
            ("--use-varlen-dataset", "--rampup-batch-size", "1", "1", "4"),
            "trace cannot follow packed rows of a batch size that grows; look at the plan: "
            "coredata.datasets.CachedWindows(...).plan(window)",
        ),
        (
            ("--use-varlen-dataset", "--dataloader-type", "cyclic", "--micro-batch-size", "1"),
            "plans are made beforehand for the order of single alone",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(flags, text, rows, capsys):
    given = ("--data-path", rows, *BASE, "--sequence-packing-scheduler", "best_fit")
    assert main(["trace", *given, *flags, "--step", "0"]) == 2
    assert text in capsys.readouterr().err


def test_the_state_of_packed_rows_is_refused(rows, tmp_path, capsys):
    given = ("--data-path", rows, *BASE, "--use-varlen-dataset")
    given += ("--sequence-packing-scheduler", "best_fit")
    state = {"version": 1, "consumed_samples": 7, "fingerprint": {}}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert main(["trace", *given, "--state", str(tmp_path / "state.json")]) == 2
    assert "trace cannot follow the state of packed rows" in capsys.readouterr().err
