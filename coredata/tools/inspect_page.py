"""What `coredata inspect` prints: in lines no wider than the terminal, or whole into a file."""

import os
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coredata.datasets import Report
from coredata.datasets.cache_files import CacheFiles
from coredata.tools.demo_page import Page, Stream
from coredata.tools.inspect_data import RunFacts
from coredata.tools.inspect_prefix import Lengths, PrefixFacts, SpecialShare
from coredata.tools.output import count_of, size_text
from coredata.tools.view_cells import shorten, shorten_left

_BOLD, _DIM, _CYAN = "\x1b[1m", "\x1b[2m", "\x1b[36m"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEAST_PATH = 16
_FACTS = (
    *("dataset_path", "path", "num_samples", "size", "sequence_length", "random_seed", "rows"),
    *("order", "limit", "window", "packer", "max_segments", "global_batch_size"),
    *("max_seqlen_per_dp_cp_rank", "data_parallel_size", "context_parallel_size", "multiple"),
)
"""What is shown of the descriptions of caches."""
_UNLIMITED = 1 << 20


class InspectPage:
    """Prints facts to a stream."""

    def __init__(self, stream: Stream) -> None:
        self._page = Page(stream)
        self._width = max(shutil.get_terminal_size((100, 24)).columns, 50)
        narrow = stream.isatty() or "COLUMNS" in os.environ
        self._room = self._width if narrow else _UNLIMITED

    def prefix(self, facts: PrefixFacts) -> None:
        """A token file."""
        self._line(shorten_left(facts.prefix, self._room), _BOLD)
        modes = ", with modes" if facts.modes else ""
        self._line(
            f"  {count_of(facts.documents, 'document')}, {count_of(facts.sequences, 'sequence')}, "
            f"{count_of(facts.tokens, 'token')} of {facts.dtype}{modes}"
        )
        self._line(f"  {size_text(facts.bin_bytes)} .bin, {size_text(facts.idx_bytes)} .idx")
        if facts.lengths is not None:
            self._lengths(facts.lengths)
        if facts.special:
            part = "" if facts.scanned == facts.tokens else f" (of {facts.scanned:,} looked at)"
            self._line(f"  special tokens{part}", _DIM)
            for one in facts.special:
                self._share(one)
        if facts.last:
            self._line("  sequences end in", _DIM)
            for one in facts.last:
                self._share(one)

    def run(self, facts: RunFacts) -> None:
        """What a run reads."""
        self._text(str(_fitted(facts.report, self._room)))
        for note in facts.notes:
            self._text(textwrap.fill(f"note: {note}", self._room, break_on_hyphens=False))
        self._line()
        total = sum(one.total for one in facts.memory)
        self._line(f"index arrays: {size_text(total)}", _BOLD)
        for one in facts.memory:
            arrays = ", ".join(f"{name} {size_text(count)}" for name, count in one.arrays.items())
            text = f": {arrays or 'none'}"
            room = max(self._room - len(one.split) - 4 - len(text), _LEAST_PATH)
            self._line(f"  {one.split} {shorten_left(one.path, room)}{text}")

    def caches(self, directory: str, found: Sequence[CacheFiles]) -> None:
        """The caches in a directory."""
        total = sum(files.size for files in found)
        self._line(
            f"{shorten_left(directory, self._room - 40)}: {count_of(len(found), 'cache')}", _BOLD
        )
        self._line(f"  {size_text(total)} in all")
        for files in found:
            try:
                known = cache_facts(files)
            except ValueError as error:
                self._line(f"  {files.class_name} {files.split_name}: {error}")
                continue
            self._line(f"  {files.key[:12]}… {files.class_name} {files.split_name}", _CYAN)
            for name, value in known.items():
                text = size_text(value) if name == "bytes" else _text_of(value)
                self._line(f"    {name}: {shorten_left(text, self._room - 6 - len(name))}")

    def state(self, name: str, state: Mapping[str, Any]) -> None:
        """A loader's state."""
        fingerprint = dict(state["fingerprint"])
        order = fingerprint.pop("order", {})
        self._line(name, _BOLD)
        consumed = state["consumed_samples"]
        total = order.get("active_samples", order.get("total_samples"))
        share = f" of {total:,} ({consumed / total:.1%} of an epoch)" if total else ""
        self._line(f"  consumed_samples: {consumed:,}{share}")
        for title, values in (("order", order), ("read from", fingerprint)):
            self._line(f"  {title}", _DIM)
            for field, value in values.items():
                self._line(f"    {field}: {value}")

    def _lengths(self, lengths: Lengths) -> None:
        quantiles = ", ".join(f"{share} {value:,}" for share, value in lengths.quantiles.items())
        self._line(
            f"  tokens in a sequence: {lengths.least:,} to {lengths.most:,}, mean "
            f"{lengths.mean:,.1f}; {_are(lengths.empty)} empty"
        )
        self._line(f"  quantiles: {quantiles}")
        most = max(count for _, _, count in lengths.histogram)
        labels = [_bucket(low, high) for low, high, _ in lengths.histogram]
        counts = [f"{count:,}" for _, _, count in lengths.histogram]
        wide, number = max(map(len, labels)), max(map(len, counts))
        room = self._width - wide - number - 6
        for label, count, (_, _, value) in zip(labels, counts, lengths.histogram, strict=True):
            bar = _bar(value / most, room, self._page.stream.encoding)
            self._line(f"    {label:>{wide}} {count:>{number}} {bar}".rstrip())

    def _share(self, one: SpecialShare) -> None:
        name = f"{shorten(one.name, 24)} " if one.name else ""
        self._line(f"    {name}({one.id}): {one.count:,} ({one.share:.3%})")

    def _text(self, text: str) -> None:
        for line in text.splitlines():
            self._line(line)

    def _line(self, text: str = "", style: str = "") -> None:
        self._page.line(shorten(text, self._room), style)


def cache_facts(files: CacheFiles) -> dict[str, Any]:
    """What a cache is of.

    Raises:
        ValueError: it is incomplete or damaged.
    """
    description = files.description()
    facts: dict[str, Any] = {"arrays": ", ".join(files.arrays), "bytes": files.size}
    for name in _FACTS:
        if description.get(name) is not None:
            facts[name] = description[name]
    packed = description.get("dataset")
    if isinstance(packed, dict):
        facts["of"] = packed.get("source_name", f"a blend of {packed.get('datasets')}")
    for part in description.get("datasets", []):
        facts.setdefault("datasets", []).append(part.get("dataset_path"))
    return facts


def _text_of(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _are(number: int) -> str:
    return "none is" if not number else "1 is" if number == 1 else f"{number:,} are"


def _bucket(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _bar(share: float, width: int, encoding: str | None) -> str:
    """A bar of up to `width` columns; in eighths of a column where these can be written."""
    try:
        _EIGHTHS.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return "#" * round(share * width)
    eighths = round(share * width * 8) or (1 if share > 0 else 0)
    whole, rest = divmod(min(eighths, width * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _fitted(report: Report, width: int) -> Report:
    """The report, its paths shortened so that its table fits, as far as that goes."""
    over = max(map(len, str(report).splitlines()), default=0) - width
    paths = [part.path or "" for split in report.splits for part in split.datasets]
    if over <= 0 or not paths:
        return report
    room = max(max(map(len, paths)) - over, _LEAST_PATH)
    splits = tuple(
        replace(
            split,
            datasets=tuple(
                replace(part, path=part.path and shorten_left(part.path, room))
                for part in split.datasets
            ),
        )
        for split in report.splits
    )
    return Report(splits)
