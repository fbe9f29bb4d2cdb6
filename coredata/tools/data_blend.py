"""From the flags that name files to blends; what cannot be found is named with what is near."""

import argparse
import difflib
import json
import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coredata.blending import get_blend_from_list
from coredata.storage import exists, expand, is_directory, is_url, read_bytes

Blend = tuple[list[str], list[float] | None]

SPLITS = ("train", "valid", "test")


def blends_from_args(args: argparse.Namespace) -> tuple[Blend | None, list[Blend | None] | None]:
    """`blend` and `blend_per_split` of a configuration, of which one at most is given.

    Raises:
        ValueError: weights that are none, an unknown split in a file, a blend without files.
        FileNotFoundError: no such file with a blend; near names are in the text.
    """
    if args.data_args_path is not None:
        items = read_named(args.data_args_path, "--data-args-path").split()
        return _blend(items, f"--data-args-path {args.data_args_path}"), None
    if args.data_path is not None:
        return _blend(args.data_path, "--data-path"), None
    if args.per_split_data_args_path is not None:
        return None, _per_split(args.per_split_data_args_path)
    given = [getattr(args, f"{split}_data_path") for split in SPLITS]
    if all(items is None for items in given):
        return None, None
    flags = [f"--{split}-data-path" for split in SPLITS]
    return None, [
        None if not items else _blend(items, flag) for items, flag in zip(given, flags, strict=True)
    ]


def prefixes_of(blend: Blend | None, per_split: Sequence[Blend | None] | None) -> list[str]:
    """Every prefix once, in the order of the flags."""
    blends = [blend, *(per_split or [])]
    return list(dict.fromkeys(prefix for one in blends if one is not None for prefix in one[0]))


def check_pairs(prefixes: Iterable[str]) -> None:
    """Refuse prefixes without both files. Names of local files that are near are in the text.

    Raises:
        FileNotFoundError: a pair or half of one is missing, or a suffix was given with a prefix.
    """
    for prefix in prefixes:
        stem, suffix = os.path.splitext(prefix)
        if suffix in (".bin", ".idx") and exists(f"{stem}.idx"):
            raise FileNotFoundError(
                f"{prefix} was given as a prefix, which is a path without .bin and .idx; use {stem}"
            )
        found = {half: exists(f"{prefix}{half}") for half in (".bin", ".idx")}
        if not any(found.values()):
            raise FileNotFoundError(
                f"there are no token files {prefix}.bin and {prefix}.idx. "
                + _near(prefix, ".idx", "Give the path of a pair without .bin and .idx")
            )
        quoted = shlex.quote(prefix)
        for half, there in found.items():
            if not there:
                other = ".idx" if half == ".bin" else ".bin"
                remedy = (
                    "copy it from where the pair was written"
                    if half == ".bin"
                    else f"copy it, or run `coredata verify {quoted} --repair --eod ID`"
                )
                raise FileNotFoundError(
                    f"{prefix}{half} is missing, although {prefix}{other} is there; {remedy}"
                )


def check_rows(paths: Iterable[str]) -> None:
    """Refuse files of rows that do not exist; near names are in the text.

    Raises:
        FileNotFoundError: a local path that does not exist and is no name on the Hub.
    """
    for path in paths:
        if is_url(path) or any(sign in path for sign in "*?["):
            continue
        hub = path.count("/") == 1 and not path.startswith((".", "/", "~"))
        if not exists(path) and not hub:
            raise FileNotFoundError(
                f"there is no file {path}. " + _near(path, "", "Give a file of rows, or owner/repo")
            )


def _blend(items: Sequence[str], where: str) -> Blend:
    blend = get_blend_from_list(_checked(items, where))
    if blend is None:
        raise ValueError(f"{where} names no files; give prefixes, or weight prefix weight prefix …")
    prefixes, weights = blend
    for prefix, weight in zip(prefixes, weights or [], strict=weights is not None):
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(
                f"{where}: weight {weight} of {prefix}; give a finite number of at least 0"
            )
    return blend


def _checked(items: Sequence[str], where: str) -> list[str]:
    """Items, if they are prefixes, or weights and prefixes in turn."""
    if not items:
        raise ValueError(f"{where} names no files; give prefixes, or weight prefix weight prefix …")
    numbers = [number for number, item in enumerate(items) if _is_number(item)]
    pairs = list(range(0, len(items), 2))
    if not numbers or len(items) == 1 or (len(items) % 2 == 0 and numbers == pairs):
        return list(items)
    if len(items) % 2:
        raise ValueError(
            f"{where} has {len(items)} items, {len(numbers)} of them numbers; weights and "
            "prefixes come in pairs: weight prefix weight prefix …. One is missing or too many"
            + (f" after {items[-2]}" if numbers[-1] == len(items) - 1 else "")
        )
    wrong = next(at for at in pairs if at not in numbers)
    raise ValueError(
        f"{where}: item {wrong + 1}, {items[wrong]!r}, stands where a weight is expected; write "
        "weight prefix weight prefix … for all, or prefixes only"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not exists(f"{text}.idx")


def _per_split(path: str) -> list[Blend | None]:
    where = f"--per-split-data-args-path {path}"
    try:
        content: Any = json.loads(read_named(path, "--per-split-data-args-path"))
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from error
    if not isinstance(content, Mapping) or not content:
        raise ValueError(
            f'{where} holds {str(content)[:60]!r}; need an object {{"train": [items], …}}'
        )
    for key in content:
        if key not in SPLITS:
            near = difflib.get_close_matches(str(key), [*SPLITS, "validation"], n=1)
            meant = {"validation": "valid"}.get(near[0], near[0]) if near else None
            hint = f"Did you mean {meant!r}? " if meant else ""
            raise ValueError(f"{where}: unknown split {key!r}. {hint}There are train, valid, test")
    return [
        None if not content.get(split) else _blend(_items(content[split], where, split), where)
        for split in SPLITS
    ]


def _items(value: Any, where: str, split: str) -> list[str]:
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return [str(item) for item in value]
    raise ValueError(
        f'{where}: {split} is {str(value)[:60]!r}; need a list, such as ["0.3", "a", "0.7", "b"]'
    )


def read_named(path: str, flag: str) -> str:
    """The text of a file that a flag names.

    Raises:
        FileNotFoundError: there is none; near names are in the text.
        ValueError: it is not text.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except FileNotFoundError as error:
        remedy = _near(path, "", "Give the path of one")
        raise FileNotFoundError(f"{flag}: there is no file {path}. {remedy}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{flag}: {path} is not text: {error}") from error


def _near(path: str, suffix: str, otherwise: str) -> str:
    """What is there instead of a local path: names that are near, or what to do."""
    if is_url(path):
        return otherwise
    directory, name = os.path.split(path)
    if not is_directory(directory or "."):
        return f"There is no directory {directory} either. {otherwise}"
    pattern = os.path.join(directory, f"*{suffix}")
    there = sorted(os.path.basename(found) for found in _listed(pattern))
    names = [found[: len(found) - len(suffix)] for found in there]
    near = _closest(name, names)
    if near:
        return f"Did you mean {' or '.join(os.path.join(directory, other) for other in near)}?"
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"In {directory or 'this directory'} there are {shown or 'none'}. {otherwise}"


def _closest(name: str, names: list[str]) -> list[str]:
    """Names that are much like `name`, apart from how all of them end."""
    cut, least = 0, min(map(len, [name, *names])) - 1
    while cut < least and all(other[-1 - cut] == name[-1 - cut] for other in names):
        cut += 1
    stems = {other[: len(other) - cut]: other for other in names}
    near = difflib.get_close_matches(name[: len(name) - cut], stems, n=3, cutoff=0.6)
    return [stems[stem] for stem in near]


def _listed(pattern: str) -> list[str]:
    try:
        return expand(pattern)
    except FileNotFoundError:
        return []
