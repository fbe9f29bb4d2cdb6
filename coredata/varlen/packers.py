"""The packers: lengths to row numbers, in compiled code."""

import numpy as np

from coredata._kernel import kernel
from coredata.varlen.bit_tree import empty_tree, insert, least, remove


@kernel
def best_fit(lengths, order, limit, max_segments, max_rows, row_of):
    """Put each segment in the row with the least room that is enough.

    Fill `row_of` with the row of each segment, or -1 where `max_rows` rows have no room; return
    the number of rows. Lengths are 1 … limit. `order` is the order segments are placed in; from
    long to short it is best-fit-decreasing, which needs some 11/9 of the fewest rows at worst,
    and on real lengths hardly more than total / limit.

    Of rows with the same room the one touched last is taken. Rows are chained by their room, and a
    tree over 0 … limit says which rooms exist, so that the smallest that is enough is found in
    O(log limit) (as in Ding et al., "Fewer Truncations Improve Language Modeling", 2024). After
    a segment as long as the one before the tree is not asked: the least room is what is left in
    that row, if it is enough, else what it was before, while there are rows of it.
    """
    exists, starts = empty_tree(limit)
    first = np.full(limit + 1, -1, row_of.dtype)
    most = min(np.int64(lengths.size), max_rows)
    following = np.empty(most, row_of.dtype)
    bounded = max_segments < lengths.size
    segments = np.zeros(most if bounded else np.int64(0), np.int64)
    rows = np.int64(0)
    room = np.int64(-1)
    length = np.int64(0)
    k = np.int64(0)
    while k < order.size:
        before = length
        length = np.int64(lengths[order[k]])
        if length != before or room < 0 or first[room] < 0:
            room = least(exists, starts, length)
        left = room
        if room >= 0:
            row = np.int64(first[room])
            first[room] = following[row]
            if first[room] < 0:
                remove(exists, starts, room)
        elif rows < max_rows:
            row = rows
            left = np.int64(limit)
            rows += 1
        else:
            row_of[order[k]] = -1
            k += 1
            continue
        places = max_segments - segments[row] if bounded else np.int64(order.size)
        after = k
        while after < order.size and lengths[order[after]] == length:
            if left < length or after - k >= places:
                break
            row_of[order[after]] = row
            left -= length
            after += 1
        if bounded:
            segments[row] += after - k
        if left > 0 and after - k < places:
            following[row] = first[left]
            first[left] = row
            if following[row] < 0:
                insert(exists, starts, left)
        k = after
    return rows


@kernel
def first_fit(lengths, order, limit, max_segments, max_rows, row_of):
    """Put each segment in the first row that has room; see `best_fit` for the rest.

    A tree over rows holds the most room of each half, so that the first row with enough is found
    in O(log rows). Rows that nothing is in yet have all room: opening one is no special case.
    """
    most = min(np.int64(lengths.size), max_rows)
    leaves = np.int64(1)
    while leaves < most:
        leaves *= 2
    room = np.zeros(2 * leaves, np.int64)
    room[leaves : leaves + most] = limit
    for node in range(leaves - 1, 0, -1):
        room[node] = max(room[2 * node], room[2 * node + 1])
    segments = np.zeros(max(most, np.int64(1)), np.int64)
    rows = np.int64(0)
    for k in range(order.size):
        segment = order[k]
        length = lengths[segment]
        if room[1] < length:
            row_of[segment] = -1
            continue
        node = 1
        while node < leaves:
            node = 2 * node if room[2 * node] >= length else 2 * node + 1
        row = node - leaves
        if row >= rows:
            rows = row + 1
        row_of[segment] = row
        segments[row] += 1
        room[node] = room[node] - length if segments[row] < max_segments else 0
        while node > 1:
            node //= 2
            room[node] = max(room[2 * node], room[2 * node + 1])
    return rows


@kernel
def next_fit(lengths, order, limit, max_segments, max_rows, row_of):
    """Go on with the current row until a segment does not fit, then with the next; never back."""
    rows = np.int64(0)
    room = np.int64(0)
    segments = np.int64(0)
    for k in range(order.size):
        segment = order[k]
        length = lengths[segment]
        if length > room or segments >= max_segments:
            if rows >= max_rows:
                row_of[segment] = -1
                continue
            rows += 1
            room = np.int64(limit)
            segments = np.int64(0)
        row_of[segment] = rows - 1
        room -= length
        segments += 1
    return rows
