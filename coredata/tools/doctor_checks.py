"""What `coredata doctor` looks at: each check gives findings, and changes nothing."""

import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from coredata.tools.doctor_imports import import_failures
from coredata.tools.output import count_of, size_text

Level = Literal["ok", "note", "fault"]


@dataclass(frozen=True)
class Finding:
    """One line of the account.

    Attributes:
        level: "fault" if something will fail.
        what: what was looked at.
        found: what is the case.
        remedy: what to do; "" if nothing.
    """

    level: Level
    what: str
    found: str
    remedy: str = ""


_EXTRAS = {
    "chat": (("jinja2",), "chat templates"),
    "fast": (("gigatoken", "orjson"), "faster encoding"),
    "parquet": (("pyarrow",), "parquet files"),
    "sentences": (("sentencex",), "--split-sentences"),
    "s3": (("s3fs",), "s3:// URLs"),
    "zstd": (("zstandard",), ".zst files"),
    "torch": (("torch",), "the PyTorch adapter"),
    "jax": (("jax",), "the JAX adapter"),
}
"""Extra -> the packages it brings, and what for."""

_SCHEMES = {
    "s3": ("s3fs", "'coredata[s3]'"),
    "s3a": ("s3fs", "'coredata[s3]'"),
    "msc": ("multi-storage-client", "'coredata[msc]'"),
    "gs": ("gcsfs", "gcsfs"),
    "gcs": ("gcsfs", "gcsfs"),
    "abfs": ("adlfs", "adlfs"),
    "az": ("adlfs", "adlfs"),
    "http": ("aiohttp", "aiohttp"),
    "https": ("aiohttp", "aiohttp"),
    "hf": ("huggingface_hub", "huggingface_hub"),
}
"""Scheme -> the package that reads it, and what to install."""

_PLACES = {scheme: "bucket" for scheme in ("s3", "s3a", "msc", "gs", "gcs", "abfs", "az")}
"""What a URL of a scheme is in; others are on a server."""

_SUFFIXES = {
    ".parquet": ("pyarrow", "'coredata[parquet]'"),
    ".pq": ("pyarrow", "'coredata[parquet]'"),
    ".zst": ("zstandard", "'coredata[zstd]'"),
    ".jinja": ("jinja2", "'coredata[chat]'"),
}

_SHARED = re.compile(r"nfs|lustre|gpfs|beegfs|ceph|smb|cifs|9p|afs|glusterfs|wekafs|panfs|fuse\.")


def installed(package: str) -> str | None:
    """Version of an installed distribution; None if it is not there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_versions() -> Iterator[Finding]:
    """Python, this library, and what it always needs."""
    from coredata import __version__

    yield Finding("ok", "coredata", f"{__version__} on Python {platform.python_version()}")
    required = required_versions()
    broken = import_failures(package for package in required if installed(package))
    for package, least in required.items():
        found = installed(package)
        if package in broken:
            yield _broken("fault", package, package, broken[package])
        elif found is None:
            yield Finding("fault", package, "not installed", f"pip install '{package}>={least}'")
        elif _numbers(found) < _numbers(least):
            remedy = f"pip install '{package}>={least}'"
            yield Finding("fault", package, f"{found}, older than {least}", remedy)
        else:
            yield Finding("ok", package, found)


def required_versions() -> Mapping[str, str]:
    """Least version of every package that is always needed, as the distribution says."""
    try:
        lines = importlib.metadata.requires("coredata") or []
    except importlib.metadata.PackageNotFoundError:
        lines = ["numpy>=1.26", "numba>=0.60", "fsspec>=2024.2", "tokenizers>=0.20"]
    found = (re.fullmatch(r"([a-zA-Z0-9_-]+)>=([0-9.]+)", line) for line in lines)
    return {match.group(1): match.group(2) for match in found if match is not None}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def check_extras() -> Iterator[Finding]:
    """Which extras are there and can be imported; one that is not is no fault by itself."""
    packages = [package for brought, _ in _EXTRAS.values() for package in brought]
    missing = {package for package in packages if not installed(package)}
    broken = import_failures(package for package in packages if package not in missing)
    lacking = missing | set(broken)
    there = [name for name, (brought, _) in _EXTRAS.items() if not lacking & set(brought)]
    yield Finding("ok", "extras", ", ".join(there) or "none")
    for name, (brought, purpose) in _EXTRAS.items():
        for package in brought:
            if package in missing:
                remedy = f"pip install 'coredata[{name}]' for {purpose}"
                yield Finding("note", f"extra {name}", f"{package} is not installed", remedy)
            elif package in broken:
                yield _broken("note", f"extra {name}", package, broken[package])


def _broken(level: Level, what: str, package: str, failure: str) -> Finding:
    name = "" if what == package else f"{package} "
    found = f"{name}{installed(package)} cannot be imported ({failure})"
    return Finding(level, what, found, f"pip install --force-reinstall {package}")


def check_targets(targets: Iterable[str]) -> Iterator[Finding]:
    """Which packages URLs and files need; those that need none give nothing."""
    named = list(targets)
    broken = import_failures(
        package for target in named for package, _ in _needed(target) if installed(package)
    )
    for target in named:
        scheme = target.partition("://")[0] if "://" in target else ""
        needs = _needed(target)
        if scheme not in ("", "file", "memory", *_SCHEMES):
            near = ", ".join(sorted(_SCHEMES))
            yield Finding("note", target, f"scheme {scheme} is fsspec's to know", f"known: {near}")
        missing = [(package, extra) for package, extra in needs if installed(package) is None]
        for package, extra in missing:
            yield Finding("fault", target, f"needs {package}", f"pip install {extra}")
        failed = [package for package, _ in needs if package in broken]
        for package in failed:
            yield _broken("fault", target, package, broken[package])
        have = ", ".join(package for package, _ in needs)
        if have and not missing and not failed:
            remote = f"; the {_PLACES.get(scheme, 'server')} is not contacted" if scheme else ""
            yield Finding("ok", target, f"{have} is there{remote}")


def _needed(target: str) -> list[tuple[str, str]]:
    """Packages that a URL or file needs, each with what to install."""
    scheme = target.partition("://")[0] if "://" in target else ""
    needs = [_SCHEMES[scheme]] if scheme in _SCHEMES else []
    return needs + [needed for suffix, needed in _SUFFIXES.items() if target.endswith(suffix)]


def check_compiled() -> Iterator[Finding]:
    """Where compiled kernels are kept, how many there are, and whether more can be written."""
    import numba

    import coredata

    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        remedy = "unset NUMBA_DISABLE_JIT"
        yield Finding("fault", "kernels", "compilation is off, reads are slow", remedy)
        return
    package = os.path.dirname(os.path.abspath(coredata.__file__))
    own = os.environ.get("NUMBA_CACHE_DIR")
    place = own or package
    unread: list[OSError] = []
    kept = [
        os.path.join(directory, name)
        for directory, _, names in os.walk(place, onerror=unread.append)
        for name in names
        if name.endswith(".nbc")
    ]
    size = sum(os.path.getsize(path) for path in kept)
    found = f"{len(kept):,} compiled ({size_text(size)}) in {place}, numba {numba.__version__}"
    closed = [str(error.filename) for error in unread if isinstance(error, PermissionError)]
    if closed:
        remedy = "change the permissions, or set NUMBA_CACHE_DIR to a directory of your own"
        found += f"; {', '.join(closed)} could not be looked through"
        yield Finding("note", "kernels", found, remedy)
    elif not os.access(place if os.path.isdir(place) else os.path.dirname(place), os.W_OK):
        remedy = "set NUMBA_CACHE_DIR to a local directory, else every start compiles anew"
        yield Finding("fault" if own else "note", "kernels", f"{found}; not writable", remedy)
    elif _SHARED.search(filesystem_type(place)):
        remedy = "set NUMBA_CACHE_DIR to a local directory if many nodes start at once"
        yield Finding("note", "kernels", f"{found}, a shared file system", remedy)
    elif not kept:
        yield Finding("note", "kernels", found, "`coredata selfcheck` compiles them once")
    else:
        yield Finding("ok", "kernels", found)


def check_open_files(prefixes: int, splits: int = 3) -> Iterator[Finding]:
    """The limit on open files against what so many prefixes need."""
    try:
        import resource
    except ModuleNotFoundError:  # Not on Windows.
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft:,}"
    if not prefixes:
        yield Finding("ok", "open files", f"limit {limit}")
        return
    needed = files_needed(prefixes, splits)
    found = f"limit {limit}, about {needed:,} needed for {count_of(prefixes, 'prefix')}"
    if soft != resource.RLIM_INFINITY and needed > soft:
        most = (
            ""
            if hard == resource.RLIM_INFINITY or hard >= needed
            else (f" (the hard limit is {hard:,}: ask an administrator)")
        )
        remedy = f"ulimit -n {1 << (needed - 1).bit_length()}{most}, or merge small prefixes"
        yield Finding("fault", "open files", found, remedy)
    else:
        yield Finding("ok", "open files", found)
    yield from _check_maps(prefixes, splits)


def files_needed(prefixes: int, splits: int = 3) -> int:
    """File descriptors of a process that has opened so many token files and their indices.

    Both halves of a pair are mapped, and three arrays for each split. Before Python 3.13 each
    mapping keeps a descriptor.
    """
    each = 0 if sys.version_info >= (3, 13) else 2 + 3 * splits
    return 64 + prefixes * each


def _check_maps(prefixes: int, splits: int) -> Iterator[Finding]:
    try:
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            limit = int(file.read())
    except (FileNotFoundError, PermissionError):
        return
    needed = 1024 + prefixes * (2 + 3 * splits)
    if needed > limit:
        found = f"limit {limit:,}, about {needed:,} needed for {count_of(prefixes, 'prefix')}"
        remedy = f"sysctl vm.max_map_count={1 << (needed - 1).bit_length()}, or --no-mmap-bin-files"
        yield Finding("fault", "memory maps", found, remedy)


def check_cache_directory(directory: str) -> Iterator[Finding]:
    """Whether a cache directory can be written, and who sees it."""
    from coredata.storage import local_path

    local = local_path(directory)
    if local is None:
        remedy = "reading maps nothing; a local or shared directory starts faster"
        yield Finding("note", f"cache {directory}", "behind a URL", remedy)
        return
    there = os.path.abspath(local)
    while not os.path.isdir(there):
        if os.path.exists(there):
            yield Finding("fault", f"cache {directory}", f"{there} is no directory", "give another")
            return
        there = os.path.dirname(there)
    if not os.access(there, os.W_OK):
        remedy = "change its permissions, or give another --data-cache-path"
        yield Finding("fault", f"cache {directory}", f"{there} is not writable", remedy)
        return
    kind = filesystem_type(there)
    free = size_text(shutil.disk_usage(there).free)
    if _SHARED.search(kind):
        found = f"{kind}, shared by nodes; {free} free"
        yield Finding("ok", f"cache {directory}", found, 'cache_scope="shared", the default')
    else:
        found = f"{kind or 'unknown file system'}, seen by this node alone; {free} free"
        remedy = 'with several nodes prepare it on each, and use cache_scope="node"'
        yield Finding("note", f"cache {directory}", found, remedy)


def filesystem_type(path: str, mounts: str = "/proc/mounts") -> str:
    """The type of the file system that `path` is on, such as "nfs4"; "" if that is not known."""
    try:
        with open(mounts, encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except FileNotFoundError:
        return ""
    real = os.path.realpath(path)
    best, kind = "", ""
    for fields in lines:
        at = fields[1].encode().decode("unicode_escape")
        if (real == at or real.startswith(at.rstrip("/") + "/")) and len(at) >= len(best):
            best, kind = at, fields[2]
    return kind
