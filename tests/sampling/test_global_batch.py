import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.sampling import PADDING, BatchSizeRampUp, GlobalBatchSampler

RAMP = BatchSizeRampUp(4, 4, 40, 12)


@given(st.integers(0, 120), st.data(), st.booleans(), st.just(RAMP) | st.integers(1, 20))
@settings(deadline=None)
def test_batches_match_walking(total, data, drop_last, size):
    consumed = data.draw(st.integers(0, total))
    sampler = GlobalBatchSampler(total, consumed, size, drop_last)
    expected, place = [], consumed
    while place < total:
        batch = size.batch_size(place) if isinstance(size, BatchSizeRampUp) else size
        samples = list(range(place, min(place + batch, total)))
        samples += [PADDING] * (batch - len(samples))
        if drop_last and PADDING in samples:
            break
        expected.append(samples)
        place += batch
    assert [batch.tolist() for batch in sampler] == expected
    assert len(sampler) == len(expected)


def test_from_the_middle_of_a_ramp():
    whole = [batch.tolist() for batch in GlobalBatchSampler(100, 0, RAMP)]
    resumed = [batch.tolist() for batch in GlobalBatchSampler(100, 28, RAMP)]
    assert [len(batch) for batch in whole] == [4, 4, 4, 4, 4, 8, 8, 8, 12, 12, 12, 12]
    assert resumed == whole[6:]


def test_padding_is_not_consumed():
    sampler = GlobalBatchSampler(10, 0, 4, drop_last=False)
    assert [sampler.consumed_after(k) for k in range(4)] == [0, 4, 8, 10]
    assert sampler.samples_in_batch(2) == 2
    assert len(sampler.resume(10)) == 0


def test_the_end_is_far_away():
    sampler = GlobalBatchSampler(10**16, 0, BatchSizeRampUp(8, 8, 10**15, 1024))
    start = len(sampler) - 1
    assert start > 10**13
    (last,) = sampler.batches(start)
    assert last.size == 1024
    assert last[0] == sampler.consumed_after(start)


def test_settings_out_of_range():
    with pytest.raises(ValueError, match=r"global_batch_size: 0 is below 1"):
        GlobalBatchSampler(10, 0, 0)
    with pytest.raises(ValueError, match=r"consumed_samples: 11 of 10 samples"):
        GlobalBatchSampler(10, 11, 4)
