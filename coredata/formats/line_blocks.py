"""Lines of a text file, one by one or as the stretch that was read at a time."""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_BOM_BYTES = b"\xef\xbb\xbf"
_WHITE_SPACE = b" \t\r\n"
_LONG = 1000
_SAMPLE = 1 << 16


class Line(NamedTuple):
    """One line as it stands in the file.

    Attributes:
        number: 1 for the first line that starts in the stretch read.
        offset: of its first byte, in bytes of the (decompressed) file.
        data: its bytes, without the newline.
        terminated: whether a newline follows; without one it is the last line of the file.
    """

    number: int
    offset: int
    data: bytes
    terminated: bool

    def is_blank(self) -> bool:
        """Whether there is nothing but white space; such a line is no row."""
        return not self.data.removeprefix(_BOM_BYTES).strip(_WHITE_SPACE)


def cut_lines(chunk: bytes) -> tuple[list[bytes | memoryview], bytes]:
    """What lies before each newline, and what lies behind the last.

    Lines that are long, as the first of them are, become views of the chunk and are not copied.
    """
    sample = min(len(chunk), _SAMPLE)
    if chunk.count(b"\n", 0, sample) * _LONG > sample:
        copies: list[bytes | memoryview] = [*chunk.split(b"\n")]
        return copies, bytes(copies.pop())
    view, begin = memoryview(chunk), 0
    lines: list[bytes | memoryview] = []
    while (end := chunk.find(b"\n", begin)) >= 0:
        lines.append(view[begin:end])
        begin = end + 1
    return lines, chunk[begin:]


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Lines that follow one another.

    Attributes:
        number: of the first; see `Line`.
        offset: of the first byte of the first.
        data: the bytes of each, without the newline; views of what was read, where that saves time.
        terminated: whether a newline follows the last.
    """

    number: int
    offset: int
    data: Sequence[bytes | memoryview]
    terminated: bool = True

    @property
    def size(self) -> int:
        """Bytes, newlines too."""
        return sum(map(len, self.data)) + len(self.data) - (not self.terminated)

    def __iter__(self) -> Iterator[Line]:
        """The lines."""
        offset, last = self.offset, len(self.data) - 1
        for index, data in enumerate(self.data):
            yield Line(self.number + index, offset, bytes(data), self.terminated or index < last)
            offset += len(data) + 1

    def pieces(self, most_bytes: int) -> Iterator["LineBlock"]:
        """The same lines in blocks of `most_bytes` at most; a longer line is one by itself.

        What is less than twice as much is not cut.
        """
        if self.size < 2 * most_bytes:
            yield self
            return
        first, size, offset = 0, 0, self.offset
        for index, data in enumerate(self.data):
            if size and size + len(data) + 1 > most_bytes:
                yield LineBlock(self.number + first, offset, self.data[first:index])
                first, size, offset = index, 0, offset + size
            size += len(data) + 1
        yield LineBlock(self.number + first, offset, self.data[first:], self.terminated)

    def without_first(self) -> "LineBlock":
        """All lines but the first."""
        offset = self.offset + len(self.data[0]) + 1
        return LineBlock(self.number + 1, offset, self.data[1:], self.terminated)

    def starting_before(self, end: int) -> "LineBlock":
        """The lines whose first byte lies before byte `end` of the file."""
        lengths = map(len, self.data)
        starts = list(itertools.accumulate(lengths, lambda at, n: at + n + 1, initial=self.offset))
        inside = bisect.bisect_left(starts, end, hi=len(self.data))
        if inside == len(self.data):
            return self
        return LineBlock(self.number, self.offset, self.data[:inside])
