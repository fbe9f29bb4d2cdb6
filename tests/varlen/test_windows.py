"""A run of packed rows, stopped and continued anywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen import PACKERS, PackWindows, RowPosition, concatenate

LENGTHS = st.lists(st.integers(0, 9), max_size=40).map(lambda x: np.array(x, np.int64))


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 12), st.integers(1, 5), st.sampled_from(PACKERS), st.data())
def test_going_on_from_any_batch_gives_the_same_rows(lengths, window, rows, packer, data):
    windows = PackWindows(lengths, 9, window, packer)
    batches = list(windows.batches(rows))
    assert all(len(plan) == rows for plan, _ in batches)
    everything = [windows.plan(w) for w in range(len(windows))]
    if everything:
        whole = concatenate(everything).padded_to(rows)
        assert len(whole) == len(batches) * rows
        if batches:
            assert concatenate([plan for plan, _ in batches]) == whole
        assert sorted(whole.segments.samples.tolist()) == np.flatnonzero(lengths).tolist()
    if batches:
        stopped = data.draw(st.integers(0, len(batches) - 1))
        position = RowPosition.from_state(batches[stopped][1].state_dict())
        assert list(windows.batches(rows, position)) == batches[stopped + 1 :]


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 12), st.integers(1, 5))
def test_dropping_the_last_batch_leaves_the_others(lengths, window, rows):
    windows = PackWindows(lengths, 9, window)
    full = [b for b in windows.batches(rows) if (b[0].row_segments() > 0).all()]
    assert list(windows.batches(rows, drop_last=True)) == full


def test_windows_read_only_their_own_lengths():
    class Lengths:
        def __init__(self):
            self.asked = []

        def __len__(self):
            return 10**12

        def __getitem__(self, samples):
            self.asked.append((samples.start, samples.stop))
            return np.full(samples.stop - samples.start, 5)

    lengths = Lengths()
    windows = PackWindows(lengths, 10, 4)
    plan, position = next(windows.batches(3, RowPosition(10**11, 1)))
    assert lengths.asked == [(4 * 10**11, 4 * 10**11 + 4), (4 * 10**11 + 4, 4 * 10**11 + 8)]
    assert plan[0].samples.tolist() == [4 * 10**11 + 2, 4 * 10**11 + 3]
    assert position == RowPosition(10**11 + 1, 2)


def test_losses_of_a_window_are_in_its_plan():
    windows = PackWindows(np.array([3, 20, 4, 30]), 9, 2, overflow="truncate")
    assert [windows.plan(w).lost_tokens for w in range(2)] == [11, 21]


def test_refusals():
    windows = PackWindows(np.array([3, 3, 3]), 9, 2)
    with pytest.raises(ValueError, match="window must be at least 1 sample, found 0"):
        PackWindows(np.array([3]), 9, 0)
    with pytest.raises(IndexError, match="There is no window 2; 2 are numbered from 0"):
        windows.plan(2)
    with pytest.raises(ValueError, match="A batch has at least 1 row, found rows=0"):
        next(windows.batches(0))
    message = r"Position RowPosition\(window=1, row=2\) lies outside .* which has 1 rows"
    with pytest.raises(ValueError, match=message):
        next(windows.batches(1, RowPosition(1, 2)))
