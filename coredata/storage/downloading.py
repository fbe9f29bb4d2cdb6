"""An object fetched whole into a local file, in pieces, several at a time."""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from coredata.storage.service import ReadService, RemoteObject

PIECE = 8 << 20
_TOGETHER = 4


def download(
    service: ReadService, what: RemoteObject, descriptor: int, piece: int = PIECE
) -> Iterator[bytes]:
    """Write an object to an open file, and give its pieces in order as they are written.

    Memory holds five pieces at most. They do not go through the memory of the service.

    Raises:
        OSError: bytes could not be had (see `Retry.run`), or the file cannot be written.
    """
    size = what.facts.size
    starts = deque(range(0, size, piece))

    def fetch(first: int) -> bytes:
        return service.fetch(what, first, min(first + piece, size))

    if len(starts) <= 1:  # most indices of a blend of many files: no threads for one request
        for first in starts:
            body = fetch(first)
            _write_all(descriptor, body, first)
            yield body
        return
    with ThreadPoolExecutor(_TOGETHER, "coredata-copy") as pool:
        coming = deque(
            (first, pool.submit(fetch, first))
            for first in [starts.popleft() for _ in range(min(_TOGETHER, len(starts)))]
        )
        try:
            while coming:
                first, future = coming.popleft()
                body = future.result()
                if starts:
                    coming.append((starts[0], pool.submit(fetch, starts.popleft())))
                _write_all(descriptor, body, first)
                yield body
        finally:
            for _, future in coming:
                future.cancel()


def _write_all(descriptor: int, body: bytes, offset: int) -> None:
    rest = memoryview(body)
    while rest:
        done = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[done:], offset + done
