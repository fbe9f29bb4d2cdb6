import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.indices import (
    FinalEpoch,
    final_epoch,
    number_of_epochs,
    number_of_samples,
    plan_epochs,
)

TOKENS = st.integers(1, 10**5)
SAMPLES = st.integers(0, 10**5)
LENGTH = st.integers(1, 300)
EXTRA = st.booleans()


def epochs_by_counting(tokens_per_epoch, num_samples, sequence_length, extra_token):
    epochs = 1
    while epochs * tokens_per_epoch < num_samples * sequence_length + extra_token:
        epochs += 1
    return epochs


@given(TOKENS, st.integers(0, 300), LENGTH, EXTRA)
@settings(deadline=None)
def test_epochs_match_counting(tokens, samples, length, extra):
    tokens = tokens % 500 + 1
    counted = epochs_by_counting(tokens, samples, length, extra)
    assert number_of_epochs(tokens, samples, length, extra) == counted


@given(TOKENS, SAMPLES, LENGTH, EXTRA)
@settings(deadline=None)
def test_epochs_are_enough_and_not_too_many(tokens, samples, length, extra):
    epochs = number_of_epochs(tokens, samples, length, extra)
    assert number_of_samples(epochs, tokens, length, extra) >= samples
    if epochs > 1:
        assert number_of_samples(epochs - 1, tokens, length, extra) < samples


def test_many_epochs_are_computed_at_once():
    # One token and 10^12 samples: a loop over epochs would not end.
    assert number_of_epochs(1, 10**12, 4096, True) == 4096 * 10**12 + 1


def test_none_is_one_epoch():
    assert number_of_epochs(0, None, 8) == 1
    assert number_of_epochs(1000, None, 8) == 1


@pytest.mark.parametrize(
    ("tokens", "one_epoch", "for_one_sample"),
    # (samples in one epoch, epochs for one sample) at S = 8 with the extra token
    [(8, 0, 2), (9, 1, 1), (2, 0, 5), (1, 0, 9), (16, 1, 1), (17, 2, 1)],
)
def test_few_tokens(tokens, one_epoch, for_one_sample):
    assert number_of_samples(1, tokens, 8, True) == one_epoch
    assert number_of_epochs(tokens, 1, 8, True) == for_one_sample


def test_no_tokens():
    for drop_last in (True, False):
        assert number_of_samples(1, 0, 8, True, drop_last) == 0
    assert number_of_epochs(0, 0, 8) == 1
    with pytest.raises(
        ValueError,
        match=r"num_samples: 10 samples of 8 tokens were asked of valid split of data/corpus, "
        r"which has 0 tokens",
    ):
        number_of_epochs(0, 10, 8, source="valid split of data/corpus")


def test_settings_out_of_range():
    with pytest.raises(ValueError, match=r"sequence_length: 0 is below 1"):
        number_of_epochs(100, 10, 0)
    with pytest.raises(ValueError, match=r"num_samples: -1 is negative"):
        number_of_epochs(100, -1, 8)


@pytest.mark.parametrize("tokens", [2**24 + 1, 2**31 + 9, 2**53 + 1, 2**62])
def test_the_kept_partial_sample_is_counted_exactly(tokens):
    # S = 1 and no extra token: as many samples as tokens. Floats round 2^24 + 1 or 2^53 + 1.
    assert number_of_samples(1, tokens, 1, False, drop_last=False) == tokens
    whole, rest = divmod(tokens - 1, 4096)
    assert number_of_samples(1, tokens, 4096, True, drop_last=False) == whole + (rest > 0)
    assert number_of_samples(1, tokens, 4096, True, drop_last=True) == whole


def test_where_the_reference_is_off_by_one():
    # 2^24 + 2 tokens, one of them extra, cut by 2^24: a full sample and a partial one.
    tokens, length = 2**24 + 2, 2**24
    assert number_of_samples(1, tokens, length, True, drop_last=False) == 2
    assert math.ceil(np.float32(tokens - 1) / np.float32(length)) == 1


@given(TOKENS, st.integers(1, 10**5), LENGTH, EXTRA)
@settings(deadline=None)
def test_final_epoch_is_within_its_limits(tokens, samples, length, extra):
    epochs = number_of_epochs(tokens, samples, length, extra)
    last = final_epoch(epochs, tokens, samples, length, extra)
    if epochs == 1:
        assert last == FinalEpoch(separate=False, samples_before=0)
    else:
        from_last = samples - last.samples_before
        per_epoch = (tokens - extra) // length
        assert 1 <= from_last <= per_epoch + 1
        assert last.separate == (from_last < int(0.80 * per_epoch))
        assert last.samples_before == number_of_samples(epochs - 1, tokens, length, extra)


def test_final_epoch_threshold():
    # 1000 samples per epoch; two epochs.
    assert final_epoch(2, 8001, 1799, 8).separate
    assert not final_epoch(2, 8001, 1800, 8).separate
    assert not final_epoch(2, 8001, 1001, 8, threshold=0).separate
    assert final_epoch(2, 8001, 1999, 8, threshold=1.0).separate


def test_final_epoch_of_the_wrong_number_of_epochs():
    with pytest.raises(ValueError, match=r"epochs: 3 epochs of 8001 .* 1500 samples .* need 2"):
        final_epoch(3, 8001, 1500, 8)
    with pytest.raises(ValueError, match=r"epochs: 2 epochs of 8001 .* 2500 samples .* need 3"):
        final_epoch(2, 8001, 2500, 8)
    with pytest.raises(ValueError, match=r"epochs: 2 epochs, but num_samples is None"):
        final_epoch(2, 8001, None, 8)


def test_a_plan_past_what_32_bits_count():
    plan = plan_epochs(3 * 2**31 + 5, 10**7, 4096, drop_last=False)
    assert plan.epochs == 7
    assert plan.samples == -(-(7 * (3 * 2**31 + 5) - 1) // 4096) == 11_010_049
    assert plan.final_epoch == FinalEpoch(separate=True, samples_before=9_437_184)
