import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.sampling import BatchSizeRampUp


@st.composite
def ramps(draw):
    start, increment = draw(st.integers(1, 20)), draw(st.integers(1, 12))
    full = start + increment * draw(st.integers(0, 9))
    return BatchSizeRampUp(start, increment, draw(st.integers(0, 400)), full)


def reference_size(ramp, consumed):
    """Megatron-LM's rule, as it is written there."""
    if consumed > ramp.ramp_up_samples:
        return ramp.global_batch_size
    per_increment = ramp.ramp_up_samples / ramp.increments
    return ramp.start_batch_size + int(consumed / per_increment) * ramp.increment


@given(ramps(), st.integers(0, 500))
@settings(deadline=None)
def test_size_is_the_references(ramp, consumed):
    if ramp.increments and ramp.ramp_up_samples:
        assert ramp.batch_size(consumed) == reference_size(ramp, consumed)
    else:
        assert ramp.batch_size(consumed) == ramp.global_batch_size


@given(ramps(), st.integers(0, 500), st.integers(0, 25))
@settings(deadline=None)
def test_steps_and_samples_match_walking(ramp, start, steps):
    consumed, walked = start, [start]
    for _ in range(steps):
        consumed += ramp.batch_size(consumed)
        walked.append(consumed)
    for step, place in enumerate(walked):
        assert ramp.consumed_after(step, start) == place
        assert ramp.steps_until(place, start) == step
        if step < steps:
            # Anywhere within a step, that step is not done yet.
            assert ramp.steps_until(walked[step + 1] - 1, start) == step


def test_a_ramp_step_by_step():
    ramp = BatchSizeRampUp(4, 4, 40, 12)
    assert [ramp.batch_size(consumed) for consumed in (0, 19, 20, 39, 40, 41)] == [
        4,
        4,
        8,
        8,
        12,
        12,
    ]
    assert [ramp.consumed_after(steps) for steps in range(10)] == [
        *(0, 4, 8, 12, 16, 20),
        *(28, 36, 44, 56),
    ]
    assert ramp.steps_until(36) == 7


@pytest.mark.parametrize(("samples", "increments", "at"), [(9, 7, 9), (18, 14, 9), (58, 14, 29)])
def test_growth_where_the_references_floats_put_it(samples, increments, at):
    """A growth that exact arithmetic puts at `at` comes one sample later."""
    ramp = BatchSizeRampUp(1, 1, samples, 1 + increments)
    assert at * increments % samples == 0
    grown = at * increments // samples
    assert ramp.batch_size(at) == reference_size(ramp, at) == grown
    assert ramp.batch_size(at + 1) == reference_size(ramp, at + 1) == grown + 1
    # Up to there, steps are of the size before.
    steps = ramp.steps_until(at + 1)
    assert ramp.consumed_after(1, start=at) == at + grown
    for start in range(at + 1):
        place = start
        for step in range(steps + 3):
            assert ramp.consumed_after(step, start) == place
            place += ramp.batch_size(place)


def test_counts_that_floats_cannot_hold():
    # A growth that exact arithmetic puts at `at` comes six samples sooner.
    ramp, at = BatchSizeRampUp(1, 1, 987024578892552266, 6), 197404915778510454
    assert [ramp.batch_size(at - back) for back in (7, 6, 0)] == [1, 2, 2]
    place = at - 20
    for step in range(30):
        assert ramp.consumed_after(step, at - 20) == place
        assert ramp.steps_until(place, at - 20) == step
        place += ramp.batch_size(place)


def test_neither_direction_walks():
    ramp = BatchSizeRampUp(8, 8, 10**15, 1024)
    steps = 10**12
    consumed = ramp.consumed_after(steps)
    assert ramp.steps_until(consumed) == steps
    assert ramp.steps_until(consumed - 1) == steps - 1
    assert ramp.batch_size(consumed) == reference_size(ramp, consumed) < 1024


def test_increments_closer_than_a_batch():
    # Ten increments within 5 samples: one step passes several of them.
    ramp = BatchSizeRampUp(4, 1, 5, 14)
    assert [ramp.consumed_after(steps) for steps in range(4)] == [0, 4, 16, 30]


@pytest.mark.parametrize("ramp_up_samples", [0, 100])
def test_a_constant_size(ramp_up_samples):
    ramp = BatchSizeRampUp(16, 4, ramp_up_samples, 16)
    assert ramp.batch_size(0) == ramp.batch_size(10**9) == 16
    assert ramp.consumed_after(5) == 80
    assert ramp.steps_until(95) == 5


def test_divisibility_by_micro_batches():
    BatchSizeRampUp(8, 4, 100, 20).check_divisible(2, 2)
    BatchSizeRampUp(8, 3, 100, 8).check_divisible(2, 2)
    with pytest.raises(ValueError, match=r"global_batch_size: 11 .* = 2 x 2 = 4. 12 would work"):
        BatchSizeRampUp(8, 3, 100, 20).check_divisible(2, 2)
    with pytest.raises(ValueError, match=r"global_batch_size: 2 .* = 2 x 4 = 8. 8 would work"):
        BatchSizeRampUp(2, 2, 100, 8).check_divisible(2, 4)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ((0, 1, 10, 8), r"start_batch_size: 0 is below 1"),
        ((8, 0, 10, 8), r"increment: 0 is below 1"),
        ((8, 1, 10, 0), r"global_batch_size: 0 is below 1"),
        ((8, 1, -1, 8), r"ramp_up_samples: -1 is negative"),
        ((16, 4, 10, 8), r"start_batch_size: 16 is above global_batch_size 8"),
        ((8, 3, 10, 16), r"from 8 to 16 are 8, not a multiple of 3. .* of 14 would work"),
    ],
)
def test_settings_out_of_range(settings, problem):
    with pytest.raises(ValueError, match=problem):
        BatchSizeRampUp(*settings)


def test_counts_out_of_range():
    ramp = BatchSizeRampUp(4, 4, 40, 12)
    with pytest.raises(ValueError, match=r"consumed_samples: -1 is negative"):
        ramp.batch_size(-1)
    with pytest.raises(ValueError, match=r"steps: -1 is negative"):
        ramp.consumed_after(-1)
    with pytest.raises(ValueError, match=r"consumed_samples: 3 is before start 4"):
        ramp.steps_until(3, 4)
