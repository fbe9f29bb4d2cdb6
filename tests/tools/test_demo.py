import argparse
import dataclasses
import io
import json
import tempfile
from contextlib import redirect_stdout

import pytest

from coredata.tools import demo, demo_steps
from coredata.tools.demo_page import Page
from coredata.tools.demo_run import (
    PLAN_FILE,
    STATE_FILE,
    DemoPlan,
    continuation,
    continue_in_a_new_process,
    digest,
    save,
)
from coredata.tools.demo_sample import telling_sample


def run(*flags):
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    return demo.run(parser.parse_args(flags))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A demo that was run once: its directory, exit code and account."""
    directory = tmp_path_factory.mktemp("demo") / "new" / "directory"
    with redirect_stdout(io.StringIO()) as account:
        code = run("--output", str(directory), "--size", "0.4", "--seq-length", "128")
    return directory, code, account.getvalue()


@pytest.fixture
def plan(finished):
    return DemoPlan(**json.loads((finished[0] / PLAN_FILE).read_text()))


@pytest.mark.slow
def test_the_demo_from_end_to_end(finished):
    directory, code, account = finished
    assert code == 0
    for part in (
        "1  Text to tokens, byte-level BPE with 8,192 tokens",
        "2  A blend, split 98,1,1, in samples of 128 tokens",
        "decoded",
        "<|endoftext|>",
        "document 2 of",
        "4  Batches of 8 samples",
        "5  Stop and go on in a new process",
        "batches after the resume are the same, in every field",
        f"files: {directory}",
    ):
        assert part in account
    assert "\x1b" not in account
    assert max(map(len, account.splitlines())) <= max(88, len(f"   files: {directory}"))
    written = {path.name for path in directory.iterdir() if path.is_file()}
    pairs = {f"{name}_text_document{end}" for name in ("code", "prose") for end in (".bin", ".idx")}
    assert written == {"code.jsonl", "prose.jsonl", PLAN_FILE, STATE_FILE} | pairs


@pytest.mark.slow
def test_shares_are_as_asked_and_the_state_is_in_the_middle(finished, plan):
    train, valid, test = plan.datasets()
    assert plan.weights == [0.7, 0.3]
    drawn = train.blend.counts()
    assert abs(drawn[0] - 0.7 * len(train)) <= 1
    assert len(valid) > 0
    assert len(test) > 0
    state = json.loads((finished[0] / STATE_FILE).read_text())
    assert state["consumed_samples"] == len(train) // 8 // 2 * 8


@pytest.mark.slow
def test_the_sample_that_is_shown_has_three_documents(plan):
    train, _, _ = plan.datasets()
    number, batch = telling_sample(train)
    assert batch["tokens"].shape == (1, 128)
    assert batch["tokens"][0].tolist() == train[number]["tokens"].tolist()
    assert len(set(batch["cu_seqlens"][0].tolist())) == 4


@pytest.mark.slow
def test_another_process_goes_on_where_any_state_says(plan, tmp_path):
    train, _, _ = plan.datasets()
    with plan.loader(train) as loader:
        for _ in range(3):
            next(loader)
        save(tmp_path, plan, loader.state_dict())
        expected = [digest(batch) for batch in loader]
    assert continue_in_a_new_process(tmp_path) == expected


@pytest.mark.slow
def test_a_continuation_that_differs_fails_the_demo(plan, tmp_path, monkeypatch):
    train, _, _ = plan.datasets()

    def one_batch_wrong(directory):
        found = list(continuation(directory))
        return [*found[:2], "0" * 16, *found[3:]]

    def one_batch_short(directory):
        return list(continuation(directory))[:-1]

    half = (len(train) // 8) // 2
    for broken, what in ((one_batch_wrong, f"batch {half + 3}"), (one_batch_short, "1 of")):
        monkeypatch.setattr(demo_steps, "continue_in_a_new_process", broken)
        stream = io.StringIO()
        assert not demo_steps.read_stop_and_resume(Page(stream), tmp_path, plan, train)
        assert "differ after the resume" in stream.getvalue()
        assert what in stream.getvalue()


@pytest.mark.slow
def test_a_process_that_fails_is_told_about(plan, finished, tmp_path):
    state = json.loads((finished[0] / STATE_FILE).read_text())
    save(tmp_path, dataclasses.replace(plan, samples=plan.samples + 8), state)
    with pytest.raises(ChildProcessError, match=r"exit code 1:(?s:.*)another dataset or order"):
        continue_in_a_new_process(tmp_path)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--size", "0"), "--size is 0.0 MB; give more than 0, such as 8"),
        (("--size", "nan"), "--size is nan MB"),
        (("--size", "0.001"), "leaves 0 documents"),
        (("--seq-length", "0"), "--seq-length is 0; give 1 or more"),
    ],
)
def test_flags_out_of_range_leave_nothing_behind(flags, message, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with redirect_stdout(io.StringIO()), pytest.raises(ValueError, match=message):
        run(*flags)
    assert list(tmp_path.iterdir()) == []


def test_without_an_output_directory_a_temporary_one_is_removed(tmp_path, monkeypatch):
    seen = []

    def step(directory, *rest, kept):
        seen.append((directory.parent, directory.is_dir(), kept))
        return 1

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(demo, "_demo", step)
    assert run() == 1
    assert seen == [(tmp_path, True, False)]
    assert list(tmp_path.iterdir()) == []
