"""A lock between processes of a host that does not outlive the process that holds it."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

_NO_LOCKS_HERE = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


@contextlib.contextmanager
def exclusive(path: str) -> Iterator[bool]:
    """Wait until no other process holds the lock on `path`, and hold it for the `with` block.

    The file is made if need be, and stays. The lock is the kernel's record lock: it ends when its
    process does, however that ends, and a forked child does not inherit it. It does not keep
    threads of one process apart.

    On NFS the server keeps it for all hosts, if locks are on; where a file system has no locks
    (an NFS mount with `nolock`, say), nobody waits. So it may save work twice done, but what is
    written under it has to be right without it: complete files, that appear by rename.

    Yields:
        Whether the lock is really held.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        held = True
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise
            held = False
        yield held
    finally:
        os.close(descriptor)  # which also lets the lock go
