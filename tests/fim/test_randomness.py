"""Draws belong to a sample: whatever was read before, in whatever process."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.fim import Draws, FIMOptions, Infilling, SampleDraws
from coredata.text import ByteTokenizer


def take(random, n=20):
    return [int(random.binomial(1, 0.5)) for _ in range(n)] + random.randint(0, 1000, 9).tolist()


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=9), st.integers(0, 2**64))
def test_a_sample_has_the_same_draws_in_any_order(samples, seed):
    one = SampleDraws(seed, "corpus")
    forward = {s: take(one.at(s)) for s in samples}
    backward = {s: take(SampleDraws(seed, "corpus").at(s)) for s in reversed(samples)}
    assert forward == backward


def test_what_a_sample_used_does_not_matter_to_the_next():
    draws = SampleDraws(7, "corpus")
    first = take(draws.at(1))
    draws.at(0).randint(0, 5, size=1)  # an odd number of 32-bit words
    assert take(draws.at(1)) == first


def test_samples_seeds_and_datasets_differ():
    streams = [take(SampleDraws(1, "a").at(s)) for s in range(50)]
    streams += [take(SampleDraws(seed, name).at(0)) for seed, name in [(2, "a"), (1, "b")]]
    assert len({tuple(s) for s in streams}) == len(streams)


def test_the_stream_is_pinned():
    """Changing this changes every sample of every running training: never do it silently."""
    draws = SampleDraws(1234, "corpus").at(5)
    assert isinstance(draws, Draws)
    assert [draws.binomial(1, 0.5) for _ in range(8)] == [1, 0, 1, 0, 1, 1, 1, 0]
    assert draws.randint(0, 1000, size=4).tolist() == [484, 281, 903, 581]


def test_over_many_samples_draws_are_fair():
    draws = SampleDraws(3, "corpus")
    first = [draws.at(s).binomial(1, 0.25) for s in range(4000)]
    assert abs(np.mean(first) - 0.25) < 0.03


def test_negative_sample_numbers_are_refused():
    with pytest.raises(ValueError, match="Sample numbers start at 0, found -1"):
        SampleDraws(0, "corpus").at(-1)


def test_batches_do_not_depend_on_the_order_of_samples():
    rng = np.random.RandomState(0)
    samples = [rng.randint(97, 110, size=30) for _ in range(12)]
    infilling = pickle.loads(pickle.dumps(Infilling.of(FIMOptions(), ByteTokenizer())))

    def read(numbers):
        draws = SampleDraws(9, "corpus")
        out = infilling.batch([samples[n] for n in numbers], (draws.at(n) for n in numbers))
        return dict(zip(numbers, (o.tolist() for o in out), strict=True))

    everything = read(list(range(12)))
    assert read([7, 3, 11]) == {n: everything[n] for n in (7, 3, 11)}
    assert sum(everything[n] != samples[n].tolist() for n in range(12)) > 2
