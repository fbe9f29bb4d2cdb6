import pytest

from coredata.tools.data_sizes import data_parallel_size, sizes_from_args


def sizes(parse, text, world_size=None):
    found = sizes_from_args(parse(*text.split()), world_size)
    return found.samples, found.train_iters


def test_steps_times_batch_size_and_the_reference_s_evaluations(parse):
    # 1 + 1000 // 300 = 4 evaluations of 10 steps.
    text = "--global-batch-size 8 --train-iters 1000 --eval-interval 300 --eval-iters 10"
    assert sizes(parse, text) == ([8000, 320, 80], 1000)
    assert sizes(parse, "--global-batch-size 2 --train-iters 5") == ([10, 200, 200], 5)


def test_samples(parse):
    text = "--global-batch-size 8 --train-samples 8007 --eval-interval 300 --eval-iters 10"
    assert sizes(parse, text) == ([8007, 320, 80], 1000)


def test_full_validation_and_no_training(parse):
    text = "--global-batch-size 8 --train-iters 1000 --eval-interval 300 --eval-iters 10"
    assert sizes(parse, f"{text} --full-validation")[0] == [8000, None, 80]
    assert sizes(parse, f"{text} --skip-train")[0] == [8000, 80, 80]
    assert sizes(parse, "--global-batch-size 8 --eval-iters 10 --skip-train")[0] == [0, 80, 80]


def test_sizes_told(parse):
    assert sizes(parse, "--num-samples 7 epoch 0") == ([7, None, 0], None)


def test_a_batch_size_that_ramps_up(parse):
    # 4 for 40 samples is 10 steps, then 8.
    text = "--global-batch-size 8 --rampup-batch-size 4 4 40 --eval-iters 0"
    assert sizes(parse, f"{text} --train-iters 12")[0] == [4 * 10 + 2 * 8, 0, 0]
    assert sizes(parse, f"{text} --train-samples 100") == ([100, 0, 0], 11 + (100 - 48) // 8)


def test_steps_of_a_ramp_up_are_those_of_the_reference(parse):
    """Its loop, with a batch size that is a function of what is consumed."""
    for start, increment, over, full, samples in (
        (4, 4, 40, 8, 100),
        (4, 4, 40, 8, 43),
        (2, 2, 100, 16, 1000),
        (2, 2, 100, 16, 57),
        (1, 1, 0, 3, 10),
        (8, 8, 64, 32, 1),
    ):
        text = f"--global-batch-size {full} --rampup-batch-size {start} {increment} {over} "
        found = sizes(parse, f"{text} --train-samples {samples} --eval-iters 0")[1]
        steps = consumed = 0
        per_increment = over / ((full - start) // increment)
        while consumed <= over and consumed <= samples:
            grown = int(consumed / per_increment) if per_increment else (full - start) // increment
            consumed += min(start + grown * increment, full)
            steps += 1
        if samples > consumed:
            steps += (samples - consumed) // full
        assert found == steps


def test_the_batch_size_follows_from_the_ranks(parse, monkeypatch):
    text = "--micro-batch-size 2 --train-iters 10 --eval-iters 0 "
    assert sizes(parse, text)[0] == [20, 0, 0]
    assert sizes(parse, f"{text} --data-parallel-size 4")[0] == [80, 0, 0]
    shared = f"{text} --tensor-model-parallel-size 2 --context-parallel-size 2"
    assert sizes(parse, shared, world_size=16)[0] == [80, 0, 0]
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert sizes(parse, shared)[0] == [40, 0, 0]
    assert data_parallel_size(parse(*shared.split(), "--pipeline-model-parallel-size", "2")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--train-iters 1", r"--global-batch-size is missing: the samples of a step"),
        ("--global-batch-size 8", r"how many samples\? Give --train-iters N or --train-samples N"),
        ("--global-batch-size 0 --train-iters 1", r"--global-batch-size 0: need at least 1"),
        ("--micro-batch-size 0 --train-iters 1", r"--micro-batch-size 0: need at least 1"),
        ("--global-batch-size 8 --train-iters -1", r"--train-iters -1 is negative"),
        ("--global-batch-size 8 --train-samples 0", r"--train-samples 0: need at least 1"),
        ("--global-batch-size 8 --train-iters 1 --eval-interval 0", r"--eval-interval 0: need at"),
        ("--global-batch-size 8 --train-iters 1 --eval-iters -2", r"--eval-iters -2 is negative"),
        (
            "--global-batch-size 8 --micro-batch-size 3 --train-iters 1 --data-parallel-size 2",
            r"--global-batch-size 8 is no multiple of --micro-batch-size 3 × 2 data-parallel ranks "
            r"= 6; 12 would be",
        ),
        ("--data-parallel-size 0", r"--data-parallel-size 0: need at least 1"),
        ("--context-parallel-size 0", r"--context-parallel-size 0: need at least 1"),
        (
            "--global-batch-size 8 --train-iters 1 --rampup-batch-size 4 4",
            r"--rampup-batch-size 4 4: need three whole numbers, .* such as 32 32 100000",
        ),
        (
            "--global-batch-size 8 --train-iters 1 --rampup-batch-size 4 x 9",
            r"--rampup-batch-size 4 x 9: need three whole numbers",
        ),
        (
            "--global-batch-size 8 --train-iters 1 --rampup-batch-size 4 3 9",
            r"--rampup-batch-size 4 3 9: increment: from 4 to 8 are 4, not a multiple of 3",
        ),
        (
            "--global-batch-size 8 --train-iters 1 --rampup-batch-size 3 5 9 --micro-batch-size 2",
            r"3",
        ),
        ("--num-samples 1 2 some", r'--num-samples: got .some.; need three numbers.*"epoch" for'),
    ],
)
def test_what_makes_no_sense(parse, text, message):
    with pytest.raises(ValueError, match=message):
        sizes(parse, text)


def test_ranks_that_do_not_fit(parse, monkeypatch):
    args = parse("--tensor-model-parallel-size", "4")
    with pytest.raises(ValueError, match=r"6 ranks are no multiple of tensor .* = 4; 8 would be"):
        data_parallel_size(args, 6)
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(ValueError, match=r"WORLD_SIZE is 'many' in the environment"):
        data_parallel_size(args)
