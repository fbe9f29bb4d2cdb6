"""Options of made-up lengths, and files of lengths."""

import numpy as np
import pytest

from coredata.varlen import MockLengths, parse_lengths


def test_defaults_follow_from_the_sequence_length():
    options = MockLengths.of(None, 100)
    assert (options.min_seq_len, options.max_seq_len, options.mean_seq_len) == (50, 100, 75)
    assert (options.mode, options.lognormal_sigma, options.format) == ("distribution", 1.1, "thd")
    assert MockLengths.of({}, 1).draw().max() == 1


def test_draws_are_the_same_every_time_and_within_bounds():
    options = MockLengths.of({"min_seq_len": 3, "max_seq_len": 9, "mean_seq_len": 5.5}, 16)
    lengths = options.draw()
    np.testing.assert_array_equal(lengths, options.draw())
    assert (len(lengths), lengths.min(), lengths.max()) == (1_000_000, 3, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "random"}, "mode: got 'random', need one of distribution, file, verification"),
        ({"type": "normal"}, "type: got 'normal', need \"lognormal\""),
        ({"format": "bshd"}, 'format: got \'bshd\', need "thd" or "sbhd"'),
        ({"mode": "file"}, 'path: missing, but mode "file" reads lengths from it'),
        ({"mode": "verification"}, 'data_path: missing, but mode "verification" reads tokens'),
        ({"min_seq_len": 9, "max_seq_len": 3}, "min_seq_len, max_seq_len: got 9 and 3, need 1 or"),
        ({"mean_seq_len": 0}, "mean_seq_len, lognormal_sigma: got 0 and 1.1, need a mean above 0"),
        ({"lognormal_sigma": "1"}, "lognormal_sigma: got '1', need a number"),
        ({"min": 1, "max": 2}, "mock data have no option 'max', 'min'; known are mode, type"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MockLengths.of(options, 64)


def test_lengths_stand_below_a_header():
    np.testing.assert_array_equal(parse_lengths("length\n 3\r\n\n12\n", "l.csv"), [3, 12])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("length\n3\n4.5\n", r"l\.csv, line 3: '4.5' is no length; below a header"),
        ("length\n0\n", "line 2: '0' is no length"),
        ("length\n3,4\n", "line 2: '3,4' is no length"),
        ("length\n", r"l\.csv holds no lengths"),
        ("", r"l\.csv holds no lengths"),
    ],
)
def test_files_of_other_things_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_lengths(text, "l.csv")
