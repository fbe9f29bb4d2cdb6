"""Looking entries up in index arrays, without copies of them: they may be mapped files."""

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int64, Integer

_MARKS = 1 << 16


def count_up_to(
    values: Integer[np.ndarray, " n"], keys: Int64[np.ndarray, " keys"]
) -> Int64[np.ndarray, " keys"]:
    """How many of the ascending `values` are at most each key, by binary search.

    As `numpy.searchsorted(values, keys, "right")`, which first copies an array that is strided,
    unaligned or of another dtype; this looks at about log2(n) entries for each key.
    """
    low = np.zeros(keys.size, np.int64)
    high = np.full(keys.size, len(values), np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        searched = low < high
        smaller = values[np.minimum(middle, len(values) - 1)] <= keys
        low = np.where(searched & smaller, middle + 1, low)
        high = np.where(searched & ~smaller, middle, high)
    return low


def places_of(
    values: Integer[np.ndarray, " n"], wanted: Int64[np.ndarray, " wanted"]
) -> Int64[np.ndarray, " places"]:
    """Where `values` are any of `wanted`, in rising order: one compiled pass, no copies."""
    ordered = np.unique(wanted)
    if ordered.size == 0 or len(values) == 0:
        return np.empty(0, np.int64)
    marks = np.zeros(_MARKS, np.bool_)
    marks[ordered % _MARKS] = True
    view = values[...]
    view.flags.writeable = False
    count = fill_places(view, ordered, marks, np.empty(0, np.int64))
    places = np.empty(count, np.int64)
    if count:
        fill_places(view, ordered, marks, places)
    return places


@kernel
def fill_places(values, wanted, marks, places):
    """Write where `values` are among the ascending `wanted`, as far as there is room; the count.

    `marks` tells by the last bits of a value whether it may be among them, which for nearly all
    values is the whole work.
    """
    count = np.int64(0)
    for i in range(values.size):
        value = np.int64(values[i])
        if marks[value & np.int64(0xFFFF)]:
            low = np.int64(0)
            high = np.int64(wanted.size)
            while low < high:
                middle = (low + high) // 2
                if wanted[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            if low < wanted.size and wanted[low] == value:
                if count < places.size:
                    places[count] = i
                count += 1
    return count
