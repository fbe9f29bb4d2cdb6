"""The reference vectors pass, and a vector that is changed makes its check fail and is named."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from coredata.testing import checks_golden, golden_vectors
from coredata.testing.checks import Check, CheckResult, run_check, run_checks
from coredata.testing.checks_golden import golden_checks
from coredata.testing.checks_invariants import invariant_checks

GOLDEN = Path(str(golden_vectors.files("coredata.testing"))) / "golden"


@pytest.mark.parametrize("check", golden_checks(), ids=lambda check: check.name)
def test_the_reference_vectors_pass(check):
    result = run_check(check)
    assert result.passed, result.failure
    assert result.covered


@pytest.mark.parametrize("check", invariant_checks(7), ids=lambda check: check.name)
def test_the_invariants_hold(check):
    result = run_check(check)
    assert result.passed, result.failure
    assert result.covered


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the vectors, which the checks read instead."""
    for folder in ("blend", "gpt", "indexed", "preprocess", "samplers"):
        shutil.copytree(GOLDEN / folder, tmp_path / "golden" / folder)
    monkeypatch.setattr(golden_vectors, "files", lambda package: tmp_path)
    return tmp_path / "golden"


def change_array(path, name, change):
    with np.load(path) as loaded:
        arrays = {key: loaded[key].copy() for key in loaded.files}
    arrays[name] = change(arrays[name])
    np.savez(path, **arrays)


def change_json(path, change):
    settings = json.loads(path.read_text())
    change(settings)
    path.write_text(json.dumps(settings))


def plus_one(array):
    array.reshape(-1)[5] += 1
    return array


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


CHANGES = [
    (
        "GPT indices and samples",
        lambda golden: change_array(golden / "gpt/one_epoch.npz", "sample_index", plus_one),
        r"gpt/one_epoch, sample_index\[2, 1\]: is \d+, expected \d+ \(1 of \d+ differ\)",
    ),
    (
        "GPT indices and samples",
        lambda golden: change_array(golden / "gpt/resets.npz", "samples_labels", plus_one),
        r"gpt/resets, field labels\[0, 5\]: is \d+, expected",
    ),
    (
        "GPT indices and samples",
        lambda golden: change_array(
            golden / "gpt/long_docs.npz", "shuffle_index", lambda a: a.astype(np.int64)
        ),
        "gpt/long_docs, shuffle_index: dtype is uint32, expected int64",
    ),
    (
        "GPT indices and samples",
        lambda golden: change_json(golden / "gpt/one_epoch.json", lambda s: s.update(length=84)),
        "gpt/one_epoch, length: is 85, expected 84",
    ),
    (
        "mock data",
        lambda golden: change_array(golden / "gpt/mock.npz", "valid", plus_one),
        r"gpt/mock, valid, tokens\[0, 5\]",
    ),
    (
        "cache names",
        lambda golden: change_json(
            golden / "gpt/cache_identity.json", lambda s: s["hashes"].reverse()
        ),
        "gpt/cache_identity, hash of train: is '28876b",
    ),
    (
        "blends",
        lambda golden: change_array(golden / "blend/tie.npz", "dataset_sample_index", plus_one),
        r"blend/tie, dataset_sample_index\[5\]",
    ),
    (
        "splits and blend lists",
        lambda golden: change_json(
            golden / "blend/splits.json", lambda s: s["splits"][1]["vector"].reverse()
        ),
        "blend/splits, shares of '969, 30, 1': is",
    ),
    (
        "splits and blend lists",
        lambda golden: change_json(
            golden / "blend/splits.json", lambda s: s["cross"][0].update(matrix=None)
        ),
        "blend/splits, overlap of 99,1,0 and 98,2,0: is",
    ),
    (
        "dataset builder",
        lambda golden: change_array(golden / "blend/builder.npz", "single_s1_0_tokens", plus_one),
        r"blend/builder, run single, valid, tokens\[0, 5\]",
    ),
    (
        "dataset builder",
        lambda golden: change_json(
            golden / "blend/builder.json",
            lambda s: s["cases"]["no_test"]["splits"][0].update(mid_num_samples=[21, 21, 22]),
        ),
        r"run no_test, train, samples asked of the parts: \[21, 21, 21\], expected \[21, 21, 22\]",
    ),
    (
        "samplers and randperm",
        lambda golden: change_json(
            golden / "samplers/samplers.json", lambda s: s["random"][2]["ranks"][1].reverse()
        ),
        r"samplers/samplers, MegatronPretrainingRandomSampler\(.*\), batch 0: is \[",
    ),
    (
        "samplers and randperm",
        lambda golden: change_json(
            golden / "samplers/samplers.json", lambda s: s["full_validation"][0]["ranks"][0].pop()
        ),
        "MegatronFullValidationSampler.*: 4 batches, expected 3",
    ),
    (
        "token files",
        lambda golden: flip(golden / "indexed/uint16.bin", 4),
        r"indexed/uint16, document \d, tokens\[\d\]: is",
    ),
    (
        "token files",
        lambda golden: flip(golden / "indexed/int32.idx", 0),
        "MagicError: .*int32.idx",
    ),
    (
        "text to token files",
        lambda golden: flip(golden / "preprocess/corpus_eod_text_document.bin", 10),
        "preprocess/corpus_eod_text_document.bin: byte 10 is 0x",
    ),
]


@pytest.mark.parametrize(("name", "change", "match"), CHANGES)
def test_a_changed_vector_is_named(copied, name, change, match):
    (check,) = [check for check in golden_checks() if check.name == name]
    change(copied)
    result = run_check(check)
    assert not result.passed
    with pytest.raises(AssertionError, match=match):
        raise AssertionError(result.failure)


@pytest.mark.parametrize(
    ("folder", "name"),
    [("indexed", "token files"), ("gpt", "GPT indices and samples"), ("blend", "blends")],
)
def test_no_vectors_do_not_pass(copied, folder, name):
    (check,) = [check for check in golden_checks() if check.name == name]
    for path in (copied / folder).iterdir():
        path.unlink()
    assert f"no reference vectors in {copied / folder}" in run_check(check).failure
    shutil.rmtree(copied / folder)
    assert "are missing; install coredata again" in run_check(check).failure


def test_what_a_check_raises_becomes_its_result():
    def disk():
        error = OSError("disk on fire")
        error.add_note("while reading sample 3")
        raise error

    def differs():
        raise AssertionError("field x differs")

    good, bad, worse = run_checks(
        [Check("g", "a", lambda: "all"), Check("g", "b", differs), Check("h", "c", disk)]
    )
    assert isinstance(good, CheckResult)
    assert (good.passed, good.covered, good.failure) == (True, "all", "")
    assert (bad.passed, bad.failure) == (False, "field x differs")
    assert worse.failure == "OSError: disk on fire\nwhile reading sample 3"
    assert (worse.group, worse.name, worse.seconds >= 0) == ("h", "c", True)


def test_the_checks_are_those_that_are_expected():
    assert checks_golden.GROUP == "Reference vectors"
    assert [check.name for check in golden_checks()] == [
        "token files",
        "text to token files",
        "GPT indices and samples",
        "mock data",
        "cache names",
        "splits and blend lists",
        "blends",
        "dataset builder",
        "samplers and randperm",
    ]
