"""`coredata view` and `coredata trace` with the flags of a training run."""

import argparse
import json
import re

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from coredata import BatchLoader, MegatronPretrainingSampler
from coredata.datasets import WithoutSamples
from coredata.formats import IndexedDatasetBuilder
from coredata.text import ByteTokenizer
from coredata.tools.data_arguments import add_data_arguments, datasets_from_args
from coredata.tools.data_limits import check_searchable
from coredata.tools.main import main
from coredata.tools.opened_data import training_steps

RUN = "--seq-length 16 --train-iters 8 --micro-batch-size 2 --global-batch-size 4 --eval-iters 0"
BYTES = "--split 1,0,0 --tokenizer-type ByteTokenizer"


@pytest.fixture
def files(tmp_path):
    tokenizer = ByteTokenizer()
    for name in ("code", "prose"):
        with IndexedDatasetBuilder(str(tmp_path / name), np.uint16) as builder:
            for k in range(12):
                ids = [*tokenizer.encode(f"{name} {k}: " + "word " * (k % 4)), tokenizer.eod]
                builder.add_document(ids, [len(ids)])
            builder.finalize()
    return tmp_path


def flags(files, extra=""):
    data = ["--data-path", "0.4", str(files / "code"), "0.6", str(files / "prose")]
    return [*data, *f"{RUN} {BYTES} {extra}".split()]


def arguments(given):
    return add_data_arguments(argparse.ArgumentParser()).parse_args(given)


def train(given):
    return datasets_from_args(arguments(given))[0]


def coredata(command, given, *more):
    return main([command, *map(str, more), *given])


def answer(capsys, given, *more):
    assert coredata("trace", given, *more, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_view_of_several_samples(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    assert coredata("view", flags(files), "--sample", 3, 5) == 0
    out = capsys.readouterr().out
    assert "sample 3 of " in out
    assert "sample 5 of " in out
    assert "\x1b" not in out
    assert all(len(line) <= 70 for line in out.splitlines())
    text = ByteTokenizer().decode(train(flags(files))[3]["tokens"].tolist())
    assert text.strip()[:6] in out.replace("⟦", "").replace("⟧", "")


def test_a_view_for_scripts(files, capsys):
    assert coredata("view", flags(files), "--sample", 3, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    expected = train(flags(files))[3]["tokens"].tolist()
    assert data["samples"][0]["rows"][0]["tokens"] == expected
    assert coredata("view", flags(files), "--sample", 3, "--table") == 0
    assert capsys.readouterr().out.count(" loss") >= 16


def test_a_view_behind_a_skip_list(files, capsys):
    given = flags(files)
    assert coredata("view", given, "--sample", 5, "--skip-samples", "0, 2-4", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["samples"][0]["sample"], data["samples"][0]["kept_number"]) == (5, 1)
    assert data["samples"][0]["rows"][0]["tokens"] == train(given)[5]["tokens"].tolist()
    (files / "skip.txt").write_text("# a spike\n0\n2-4\n")
    assert coredata("view", given, "--sample", 5, 3, "--skip-samples", files / "skip.txt") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "sample 5 of 33 (number 1 of the 29 kept), a blend of 2; this one is of GPT" in out
    assert "sample 3 of 33, a blend" in out
    assert "it is on the skip list: training passes it over" in out
    assert coredata("view", given, "--sample", 1, "--skip-samples", "4-2") == 2
    assert "--skip-samples: skip list, line 1: '4-2' is neither" in capsys.readouterr().err
    assert coredata("view", given, "--sample", 1, "--skip-samples", "900") == 2
    assert "skip: sample 900 is to be skipped, but the dataset has" in capsys.readouterr().err


def test_one_epoch_without_steps(files, capsys):
    given = ["--data-path", str(files / "code"), *BYTES.split(), "--seq-length", "16"]
    assert coredata("view", given, "--sample", 0) == 0
    captured = capsys.readouterr()
    assert "one epoch of every file, whose order is not that of a longer run" in captured.err
    weighted = ["--data-path", "1", str(files / "code"), "1", str(files / "prose")]
    given = [*weighted, *BYTES.split(), "--seq-length", "16"]
    assert coredata("view", given, "--sample", 0) == 2
    assert "Give --train-iters or --train-samples, as for training" in capsys.readouterr().err


def test_samples_and_splits_that_there_are_not(files, capsys):
    given = flags(files)
    count = len(train(given))
    assert coredata("view", given, "--sample", count) == 2
    assert f"sample {count} was asked of {count} samples; they are" in capsys.readouterr().err
    assert coredata("view", given, "--sample", 10**20) == 2
    assert f"sample {10**20} was asked of {count} samples; they are" in capsys.readouterr().err
    assert coredata("view", given, "--sample", 0, "--which", "test") == 2
    assert "--which test: the flags give no test split, only train" in capsys.readouterr().err


def test_an_unknown_prefix(files, capsys):
    given = ["--data-path", str(files / "cod"), *RUN.split(), *BYTES.split()]
    assert coredata("trace", given, "--step", 0) == 2
    assert "code" in capsys.readouterr().err


def test_steps_iterations_and_samples_agree(files, capsys):
    given = flags(files)
    step = answer(capsys, given, "--step", 3)
    assert (step["consumed_before"], step["consumed_after"]) == (12, 16)
    assert {part["sample"] for part in step["parts"]} == {12, 13, 14, 15}
    assert step["samples"] == "12-15"
    assert answer(capsys, given, "--iteration", 4) == step
    sample = answer(capsys, given, "--sample", 13)
    assert [one["step"] for one in sample["steps"]] == [3]
    assert sample["parts"] == [part for part in step["parts"] if part["sample"] == 13]
    last = len(train(given)) - 1
    beyond = answer(capsys, given, "--sample", last)
    assert beyond["steps"] == ([] if last >= 32 else beyond["steps"])


def test_documents_and_steps_agree(files, capsys):
    given = flags(files)
    path = str(files / "prose")
    found = answer(capsys, given, "--document", 7, "--path", path)
    expected = set()
    for number in range(8):
        for part in answer(capsys, given, "--step", number)["parts"]:
            if (part["document"], part["path"]) == (7, path):
                expected.add((number, part["sample"]))
    assert {(one["step"], one["sample"]) for one in found["sightings"]} == expected
    assert expected
    fewer = answer(capsys, given, "--document", 7, "--path", path, "--until-step", 4)
    assert {one["step"] for one in fewer["sightings"]} == {s for s, _ in expected if s < 4}
    either = answer(capsys, given, "--document", 7)
    assert len(either["sightings"]) > len(found["sightings"])


@pytest.mark.parametrize("extra", ["--dataloader-type cyclic", "--rampup-batch-size 2 2 8"])
def test_other_orders(files, capsys, extra):
    given = flags(files, extra)
    step = answer(capsys, given, "--step", 1)
    sample = step["parts"][0]["sample"]
    steps = [one["step"] for one in answer(capsys, given, "--sample", sample)["steps"]]
    assert 1 in steps
    if "cyclic" in extra:
        longer = answer(capsys, given, "--sample", sample, "--until-step", 60)["steps"]
        assert [one["step"] for one in longer][: len(steps)] == steps
        assert len(longer) > len(steps)
        assert {part["sample"] for part in step["parts"]} != {4, 5, 6, 7}
    else:
        assert step["consumed_before"] == 2


def test_pages(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    given = flags(files)
    for question in (("--step", 3), ("--sample", 13), ("--document", 7)):
        assert coredata("trace", given, *question) == 0
        out = capsys.readouterr().out
        assert all(len(line) <= 80 for line in out.splitlines())
    assert coredata("trace", given, "--step", 3) == 0
    out = capsys.readouterr().out
    assert out.startswith("step 3 (iteration 4): consumed_samples 12 to 16\n  samples 12-15 (as")
    assert re.search(r"  sample 12: .*(code|prose), document \d+, tokens \d+–\d+\n", out)
    assert re.search(r"(code|prose): \d samples?, \d+ tokens\n", out)


def state_of(given, batches, skip=()):
    dataset = WithoutSamples(train(given), skip)
    with BatchLoader(dataset, MegatronPretrainingSampler(len(dataset), 0, 2, 0, 2)) as loader:
        for _ in range(batches):
            next(loader)
        return loader.state_dict()


def test_the_step_before_a_state(files, capsys):
    given = flags(files)
    (files / "state.json").write_text(json.dumps(state_of(given, 4)))
    found = answer(capsys, given, "--state", files / "state.json")
    assert (found["step"], found["consumed_after"]) == (3, 16)
    several = {"train": state_of(given, 4, [0, 1, 20]), "valid": {}}
    (files / "state.json").write_text(json.dumps(several))
    found = answer(capsys, given, "--state", files / "state.json")
    other = answer(capsys, given, "--step", 3, "--skip-samples", "0,1,20")
    assert found == other
    assert coredata("trace", given, "--state", files / "state.json", "--skip-samples", "3") == 2
    text = 'skipped_samples: the state has "0-1,20", this loader has "3"'
    assert text in capsys.readouterr().err


def test_a_state_from_another_dataset(files, capsys):
    given = flags(files)
    (files / "state.json").write_text(json.dumps(state_of(given, 4)))
    other = ["--data-path", "0.5", str(files / "code"), "0.5", str(files / "prose")]
    other += [*RUN.split(), *BYTES.split()]
    assert coredata("trace", other, "--state", files / "state.json") == 2
    error = capsys.readouterr().err
    assert "the loader state was saved over another dataset or order" in error
    assert "weights: the state has" in error


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "is not JSON"),
        ("[1]", "holds no loader state: list"),
        ('{"step": 3}', r"holds no loader state: \['step'\]; need a JSON file of what state_dict"),
    ],
)
def test_files_that_are_no_states(files, capsys, content, text):
    (files / "state.json").write_text(content)
    assert coredata("trace", flags(files), "--state", files / "state.json") == 2
    assert re.search(text, capsys.readouterr().err)


def test_questions_that_make_no_sense(files, capsys):
    given = flags(files)
    for question, text in [
        ((), "what is asked? Give --step, --iteration, --sample, --document or --state"),
        (("--step", 8), "--step 8: the run has 8 steps, numbered 0 to 7"),
        (("--iteration", 0), "--iteration 0: the run has 8 iterations, numbered 1 to 8"),
        (("--iteration", 9), "--iteration 9: the run has 8 iterations, numbered 1 to 8"),
        (("--sample", 10**20), f"sample {10**20} was asked of 33 samples; they are numbered"),
        (("--state", "nofile.json"), "nofile.json does not exist; the state of a loader is what"),
        (("--document", 12), "document 12 was asked of"),
        (("--document", 1, "--path", "x"), "path: x is not in the blend, which reads"),
        (("--sample", 900), "sample 900 was asked of"),
    ]:
        assert coredata("trace", given, *question) == 2
        assert text in capsys.readouterr().err
    (files / "state.json").write_text(json.dumps(state_of(given, 0)))
    assert coredata("trace", given, "--state", files / "state.json") == 2
    assert "was saved before the first step; give --step 0" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        coredata("trace", given, "--step", 1, "--document", 2)
    assert "not allowed with" in capsys.readouterr().err


def test_numbers_are_the_original_ones_behind_a_skip_list(files, capsys):
    given = flags(files)
    skip = ("--skip-samples", "0,2-4")
    step = answer(capsys, given, "--step", 1, *skip)
    assert (step["samples"], step["kept_numbers"]) == ("8-11", "4-7")
    assert {(part["sample"], part["kept_number"]) for part in step["parts"]} == {
        (8, 4),
        (9, 5),
        (10, 6),
        (11, 7),
    }
    sample = answer(capsys, given, "--sample", 9, *skip)
    assert (sample["sample"], sample["kept_number"], sample["skipped"]) == (9, 5, False)
    assert [one["step"] for one in sample["steps"]] == [1]
    assert sample["parts"] == [part for part in step["parts"] if part["sample"] == 9]
    where = [{k: v for k, v in p.items() if k != "kept_number"} for p in sample["parts"]]
    assert where == answer(capsys, given, "--sample", 9)["parts"]
    skipped = answer(capsys, given, "--sample", 3, *skip)
    assert (skipped["skipped"], skipped["kept_number"], skipped["steps"]) == (True, None, [])
    assert skipped["parts"][0]["sample"] == 3
    document, path = step["parts"][0]["document"], step["parts"][0]["path"]
    found = answer(capsys, given, "--document", document, "--path", path, *skip)
    assert 8 in [one["sample"] for one in found["sightings"] if one["step"] == 1]
    # What a step is said to have seen is what a skip list takes from the next run.
    after = answer(capsys, given, "--step", 1, "--skip-samples", "0,2-4," + step["samples"])
    assert after["samples"] == "12-15"


def test_pages_behind_a_skip_list(files, capsys):
    given = [*flags(files), "--skip-samples", "0,2-4"]
    assert coredata("trace", given, "--step", 1) == 0
    out = capsys.readouterr().out
    assert "  samples 8-11 (as a skip list takes them)\n" in out
    assert "  numbers 4-7 of the samples that the skip list keeps\n" in out
    assert "  sample 8: " in out
    assert "  sample 4: " not in out
    later = [*flags(files), "--skip-samples", "20"]
    assert coredata("trace", later, "--step", 1) == 0
    out = capsys.readouterr().out
    assert "  samples 4-7 (as a skip list takes them)\n" in out
    assert "skip list keeps" not in out, "nothing is skipped before it"
    assert coredata("trace", given, "--sample", 9) == 0
    assert "sample 9 (number 5 of those kept)\n  taken in step 1 " in capsys.readouterr().out
    assert coredata("trace", given, "--sample", 3) == 0
    assert "  taken in no step: it is on the skip list\n" in capsys.readouterr().out


def test_nothing_left_by_a_skip_list(files, capsys):
    given = [*flags(files), "--skip-samples", "0-32"]
    assert coredata("trace", given, "--step", 0) == 2
    assert (
        "the skip list passes over all samples (33): none is left for a" in capsys.readouterr().err
    )


def test_other_splits_are_not_touched_by_a_skip_list(files, capsys):
    given = flags(files, "--split 50,50,0 --eval-iters 2")
    step = answer(capsys, given, "--step", 0, "--which", "valid", "--skip-samples", "0-3")
    assert step == answer(capsys, given, "--step", 0, "--which", "valid")


def test_ranges_are_never_cut(files, capsys, monkeypatch):
    given = flags(files)
    wanted = {
        f"tokens {part['offset']}–{part['offset'] + part['length'] - 1}"
        for part in answer(capsys, given, "--step", 3)["parts"]
    }
    monkeypatch.setenv("COLUMNS", "40")
    assert coredata("trace", given, "--step", 3) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 40 for line in out.splitlines())
    assert all(text in out for text in wanted)
    monkeypatch.delenv("COLUMNS")
    assert coredata("trace", given, "--step", 3) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    assert str(files / "prose") in out


def test_sizes_that_no_computer_holds(files, capsys):
    huge = 10**20
    for flag in ("--global-batch-size", "--train-iters", "--eval-iters"):
        assert coredata("trace", [*flags(files), flag, str(huge)], "--step", 0) == 2
        told = capsys.readouterr().err
        assert f"{flag} {huge}: {huge:,} are too many; a computer holds the index of at" in told
    given = [*flags(files), "--train-iters", str(1 << 47)]
    assert coredata("trace", given, "--step", 0) == 2
    assert f"--train-iters {1 << 47}" in capsys.readouterr().err
    given = [*flags(files), "--num-samples", str(huge), "0", "0"]
    assert coredata("trace", given, "--step", 0) == 2
    assert f"--num-samples {huge} 0 0: {huge:,} are too many" in capsys.readouterr().err
    cyclic = flags(files, "--dataloader-type cyclic")
    assert coredata("trace", cyclic, "--step", huge) == 2
    assert f"--step {huge}: {4 * huge + 4:,} are too many; a computer" in capsys.readouterr().err
    assert coredata("trace", cyclic, "--iteration", huge) == 2
    assert f"--iteration {huge}: {4 * huge:,} are too many" in capsys.readouterr().err


def test_a_search_through_too_many_epochs_is_refused(files, capsys):
    cyclic = flags(files, "--dataloader-type cyclic")
    for asked in (("--sample", 3), ("--document", 3, "--path", files / "prose")):
        assert coredata("trace", cyclic, *asked, "--until-step", 10**15) == 2
        told = capsys.readouterr().err
        assert re.search(r"1,000,000,000,000,000 steps are [\d,]+ epochs of 32 samples, each", told)
    fits = int(re.search(r"give --until-step (\d+) or less", told).group(1))
    assert 10**6 < fits < 10**8
    steps = training_steps(arguments(cyclic), 33)
    check_searchable(steps, fits)
    with pytest.raises(ValueError, match="take too long to search"):
        check_searchable(steps, fits + 1)
    assert coredata("trace", cyclic, "--sample", 3, "--until-step", -1) == 2
    assert "--until-step -1 is negative; give the number of steps" in capsys.readouterr().err
    few = answer(capsys, cyclic, "--sample", 3, "--until-step", 24)
    assert len(few["steps"]) == 3, "once an epoch of eight steps"
    # Samples that are taken in order are taken once: there is an end.
    assert answer(capsys, flags(files), "--sample", 3, "--until-step", 10**15)["steps"]


def test_all_of_a_run_that_is_given_in_samples(files, capsys):
    given = flags(files, "--dataloader-type cyclic")
    at = given.index("--train-iters")
    given = [*given[:at], *given[at + 2 :], "--num-samples", "32", "0", "0"]
    assert len(answer(capsys, [*given, "--train-samples", "64"], "--sample", 3)["steps"]) == 2


def test_numbers_of_samples_instead_of_steps(files, capsys):
    weighted = ["--data-path", "1", str(files / "code"), "1", str(files / "prose")]
    given = [*weighted, *BYTES.split(), "--seq-length", "16", "--num-samples", "10", "0", "0"]
    assert coredata("view", given, "--sample", 3) == 0
    assert "sample 3 of 10" in capsys.readouterr().out
    step = answer(capsys, given, "--step", 1, "--global-batch-size", "5")
    assert step["samples"] == "5-9"


def test_a_set_that_there_is_not(files, capsys):
    given = flags(files, "--split 50,50,0 --eval-iters 2")
    assert coredata("view", given, "--sample", 0, "--which", "valid", "--set", 3) == 2
    text = "--set 3: there is one set of the valid split, number 0; leave --set out"
    assert text in capsys.readouterr().err


def test_batches_of_unknown_size(files, capsys):
    given = ["--data-path", str(files / "code"), *BYTES.split(), "--seq-length", "16"]
    assert coredata("trace", given, "--step", 0) == 2
    assert "--global-batch-size is missing" in capsys.readouterr().err
    cyclic = [*given, "--global-batch-size", "4", "--dataloader-type", "cyclic"]
    assert coredata("trace", cyclic, "--step", 0) == 2
    assert "--micro-batch-size is missing: a cyclic order depends on it" in capsys.readouterr().err
    external = [*given, "--global-batch-size", "4", "--dataloader-type", "external"]
    assert coredata("trace", external, "--step", 0) == 2
    assert "--dataloader-type external: the order of samples is not" in capsys.readouterr().err


def test_rows_of_conversations(files, capsys):
    rows = [
        {"messages": [{"role": "user", "content": f"Q{k}"}, {"role": "assistant", "content": "A"}]}
        for k in range(6)
    ]
    path = files / "chats.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    for kind in ("--sft", "--use-varlen-dataset"):
        given = ["--data-path", str(path), *RUN.split(), *BYTES.split(), kind]
        given += ["--seq-length", "64"]
        assert coredata("view", given, "--sample", 2) == 0
        assert "document 2" in capsys.readouterr().out
        found = answer(capsys, given, "--document", 2)
        assert [one["sample"] for one in found["sightings"]] == [2, 8, 14, 20, 26]


def test_infilling(files, capsys):
    given = flags(files, "--fim-data --fim-rate 1 --seq-length 64")
    assert coredata("view", given, "--sample", 0) == 0
    out = capsys.readouterr().out
    assert "GPTFIMDataset" in out
    assert "infilling may have permuted the tokens" in out
    step = answer(capsys, given, "--step", 0)
    assert {part["sample"] for part in step["parts"]} == {0, 1, 2, 3}


def test_sentences(files, capsys, tmp_path):
    from coredata.testing.checks_masked import random_sentences

    prefix = random_sentences(tmp_path / "sentences", 3)
    vocabulary = tmp_path / "tokenizer.json"
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *(f"{'##' * (k % 3 == 0)}w{k}" for k in range(200)),
    ]
    model = models.WordPiece({word: k for k, word in enumerate(words)}, unk_token="[UNK]")
    inner = Tokenizer(model)
    inner.add_special_tokens(words[:5])
    inner.save(str(vocabulary))
    given = ["--data-path", prefix, "--dataset", "bert", "--tokenizer-model", str(vocabulary)]
    given += [
        "--split",
        "1,0,0",
        "--seq-length",
        "64",
        "--train-iters",
        "5",
        "--global-batch-size",
        "4",
    ]
    code = coredata("view", given, "--sample", 2)
    out, error = capsys.readouterr()
    assert code == 0, error
    assert "‹[CLS]›" in out
    assert "‹[MASK]›=" in out
    part = answer(capsys, given, "--sample", 2)["parts"][0]
    found = answer(capsys, given, "--document", part["document"])
    assert 2 in [one["sample"] for one in found["sightings"]]


def test_a_document_that_no_sample_has(files, capsys):
    given = flags(files, "--num-samples 2 0 0")
    unseen = next(
        number
        for number in range(40)
        if not answer(capsys, given, "--document", number, "--path", files / "prose")["samples"]
    )
    assert coredata("trace", given, "--document", unseen, "--path", files / "prose") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"document {unseen} of {files / 'prose'}: in no sample of this split: ")
    assert "0 samples" not in out


def test_a_step_beyond_the_run(files, capsys):
    given = ["--data-path", str(files / "prose"), *f"{RUN} {BYTES}".split()]
    given += ["--train-iters", "2"]
    for asked, note in (
        (("--step", 2), "--step 2 lies beyond the end of the run: --train-iters 2"),
        (("--iteration", 3), "--iteration 3 lies beyond the end of the run"),
        (("--step", 1), ""),
    ):
        assert coredata("trace", given, *asked) == 0
        told = capsys.readouterr().err
        assert note in told
        assert bool(note) == ("beyond" in told)


def test_a_document_of_skipped_samples_alone(files, capsys):
    given = flags(files)
    path = str(files / "prose")
    seen = answer(capsys, given, "--document", 7, "--path", path)
    assert seen["skipped_samples"] == 0
    numbers = sorted({one["sample"] for one in seen["sightings"]})
    some = ("--skip-samples", ",".join(map(str, numbers[:1])))
    fewer = answer(capsys, given, "--document", 7, "--path", path, *some)
    assert fewer["skipped_samples"] == 1
    assert coredata("trace", given, "--document", 7, "--path", path, *some) == 0
    assert "1 more sample with it is on the skip list" in capsys.readouterr().out
    every = ("--skip-samples", "0-31")
    assert coredata("trace", given, "--document", 7, "--path", path, *every) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert re.search(r"in no step: \d samples? with it (is|are) on the skip list", told), told


def test_a_sample_beyond_the_steps_that_are_looked_at(files, capsys):
    assert coredata("trace", flags(files), "--sample", 31, "--until-step", 3) == 0
    told = capsys.readouterr().out
    assert "taken in no step of the first 3: it lies beyond these" in told


def test_a_step_that_there_is_not_counts_those_of_the_run(files, capsys):
    given = ["--data-path", str(files / "code"), *BYTES.split(), "--seq-length", "16"]
    given += ["--train-iters", "2", "--global-batch-size", "2", "--eval-iters", "0"]
    assert coredata("trace", given, "--iteration", 900) == 2
    assert "the run has 2 iterations, numbered 1 to 2" in capsys.readouterr().err
