"""How files behind URLs are read: sizes, limits and times, beside the options of fsspec."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from coredata.storage.block_checksums import BLOCK

OPTIONS_KEY = "coredata"
"""Where `ReadOptions` stand in storage options; everything else there goes to fsspec."""

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class ReadOptions:
    """How the bytes of objects are fetched and kept. A value: two equal ones share one cache.

    They travel in the storage options of whatever reads, under "coredata", as an object or as a
    mapping of fields, so that they can stand in a configuration file:

    `storage_options={"anon": True, "coredata": {"memory": 1 << 30, "processes": 4}}`

    Raises:
        ValueError: a field out of range; the text names it and a value that would work.
    """

    memory: int = 256 * _MIB
    """Bytes that fetched data may take, in all processes together: see `processes`."""

    processes: int = 1
    """How many processes read with these options on one host (workers of loaders, ranks). Each
    takes its share of `memory`; they cannot count each other."""

    gap: int = 16 * _KIB
    """Two ranges with at most so many bytes between them may be fetched as one."""

    waste: int | float = 0.2
    """Bytes fetched only because they lie in such gaps: at most this share of the bytes wanted."""

    largest_request: int = 4 * _MIB
    """Bytes that one request asks for at most."""

    requests: int = 32
    """Requests under way at the same time, in one process."""

    timeout: int | float = 20.0
    """Seconds that one try may take, where the file system can be interrupted (the asynchronous
    ones: S3, GCS, Azure, HTTP)."""

    deadline: int | float = 120.0
    """Seconds in which a range must have come, all tries and pauses together."""

    recheck: int | float = 60.0
    """Seconds after which it is looked again whether an object is still the same, where requests
    cannot demand it (S3 and HTTP with an ETag can, at every request)."""

    disk: str | None = None
    """A local directory that keeps fetched blocks for later, shared by all processes of the host.
    None: memory only."""

    disk_bytes: int = 16 * _GIB
    """Bytes that `disk` may take."""

    block: int = 256 * _KIB
    """Bytes in a block on `disk`; with a disk, whole blocks are fetched."""

    copies: str | None = field(default=None, compare=False)
    """A local directory for whole copies of `.idx` files, shared by all processes of the host.
    None: the environment variable COREDATA_CACHE, or `coredata` in the user's cache directory."""

    checksums: bool = False
    """Compare everything that is fetched of a token file with the checksums in the `.crc` file
    beside it, which must be there (`write_block_checksums`). Requests then begin and end at
    multiples of 2 KiB."""

    def __post_init__(self) -> None:
        """Check all fields."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            whole = "a whole number" if name in _WHOLE else "a number"
            kind = int if name in _WHOLE else int | float
            if not isinstance(value, kind) or isinstance(value, bool) or not value >= least:
                raise ValueError(f"{name}: got {value!r}, need {whole} of at least {least}")
        least = max(8 * self.unit, _LEAST_SHARE)
        if self.share < least:
            raise ValueError(
                f"memory: {self.memory} bytes for {self.processes} processes are {self.share} for "
                f"each, and {least} are needed; give memory={least * self.processes} or more"
            )

    @property
    def share(self) -> int:
        """Bytes that one process may hold."""
        return self.memory // self.processes

    @property
    def unit(self) -> int:
        """Requests begin and end at multiples of so many bytes: blocks on disk, or of checksums."""
        return math.lcm(1 if self.disk is None else self.block, BLOCK if self.checksums else 1)


_LEAST_SHARE = _MIB
_LEAST = {
    "memory": 1,
    "processes": 1,
    "gap": 0,
    "waste": 0,
    "largest_request": 1,
    "requests": 1,
    "timeout": 0.001,
    "deadline": 0,
    "recheck": 0,
    "disk_bytes": 1,
    "block": 1,
}
_WHOLE = (
    "memory",
    "processes",
    "gap",
    "largest_request",
    "requests",
    "disk_bytes",
    "block",
)


def read_options(storage_options: Mapping[str, Any] | None) -> ReadOptions:
    """The options for reading that stand in storage options; the defaults if none do.

    Raises:
        ValueError: an unknown name, or a value out of range.
        TypeError: neither `ReadOptions` nor a mapping.
    """
    given = (storage_options or {}).get(OPTIONS_KEY)
    if given is None:
        return ReadOptions()
    if isinstance(given, ReadOptions):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(
            f'storage_options["{OPTIONS_KEY}"]: got {given!r}, need ReadOptions or a mapping of '
            'its fields, such as {"memory": 268435456}'
        )
    known = [one.name for one in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise ValueError(
                f'storage_options["{OPTIONS_KEY}"] has {name!r}; it may have {", ".join(known)}'
            )
    return ReadOptions(**given)


def with_read_options(storage_options: Mapping[str, Any] | None, **changes: Any) -> dict[str, Any]:
    """Storage options in which some options for reading are others."""
    changed = replace(read_options(storage_options), **changes)
    return {**(storage_options or {}), OPTIONS_KEY: changed}


def file_system_options(storage_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """What of storage options goes to fsspec: all but the options for reading."""
    return {key: value for key, value in (storage_options or {}).items() if key != OPTIONS_KEY}
