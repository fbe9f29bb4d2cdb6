"""What `coredata verify` prints: a line for each file, what is wrong below it, a verdict."""

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from coredata.tools.demo_page import Page, Stream
from coredata.tools.output import count_of, rate_text, size_text, time_text
from coredata.tools.verify_run import Checked, mixed_dtypes

_GREEN, _RED, _YELLOW, _DIM = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[2m"
_KEY = 12
"""Characters of a cache's hash that are shown."""


class VerifyPage:
    """Prints what was checked to a stream, as it comes; `quiet` prints nothing."""

    def __init__(self, stream: Stream, quiet: bool = False) -> None:
        self._page = Page(stream)
        self._quiet = quiet
        self._width = min(max(shutil.get_terminal_size((100, 24)).columns, 40), 160)

    def checked(self, one: Checked) -> None:
        """One line, and more if something is wrong."""
        verdict = "FAULT" if one.damaged else "repaired" if one.faults else "ok"
        verdict = "UNREAD" if one.unread and not one.faults else verdict
        colour = _RED if one.damaged or one.unread else _YELLOW
        facts = _pair_facts(one.facts) if one.kind == "pair" else _cache_facts(one)
        self._wrapped(
            f"{verdict:<8}  {_short(one)}", "          ", "" if verdict == "ok" else colour
        )
        if facts:
            self._wrapped(f"          {facts}", "          ", _DIM)
        for kind, text in one.faults:
            self._wrapped(f"          {kind}: {text}", "            ", colour)
        if one.repaired:
            self._wrapped(f"          repaired: {one.repaired}", "            ", _YELLOW)
        if one.refused:
            self._wrapped(f"          not repaired: {one.refused}", "            ", _RED)
        for text in (one.unread, one.unwritten):
            if text:
                self._wrapped(f"          {text}", "            ", _RED)

    def end(
        self, found: Sequence[Checked], notes: Sequence[str], scanned: int, missed: int = 0
    ) -> None:
        """Notes and the verdict; `scanned` is in bytes, `missed` counts what was not seen."""
        mixed = mixed_dtypes(list(found))
        for note in [*notes, *([mixed] if mixed else [])]:
            self._wrapped(f"note      {note}", "          ", _YELLOW)
        seconds = sum(one.seconds for one in found)
        broken = [one for one in found if one.damaged]
        unread = sum(1 for one in found if one.unread)
        unwritten = sum(1 for one in found if one.unwritten)
        repaired = sum(1 for one in found if one.repaired)
        speed = f", {rate_text(scanned, seconds)} of tokens" if scanned else ""
        if broken:
            are = "is" if len(broken) == 1 else "are"
            refused = sum(1 for one in broken if one.refused)
            mended = f"; {repaired} repaired, {refused} not" if repaired or refused else ""
            self._wrapped(f"{len(broken)} of {len(found)} {are} damaged{mended}.", "", _RED)
        if unread:
            self._wrapped(f"{unread} of {len(found)} could not be checked.", "", _RED)
        if unwritten:
            self._wrapped(f"{unwritten} of {len(found)} could not be written to.", "", _RED)
        if broken or unread or unwritten:
            return
        aside = sum(1 for one in found if one.repaired and one.kind == "cache")
        sound = len(found) - aside
        mended = f" ({repaired - aside} repaired)" if repaired > aside else ""
        texts = []
        if sound:
            every = {1: "The only one is", 2: "Both are"}.get(sound, f"All {sound:,} are")
            every = f"The other {sound} {'is' if sound == 1 else 'are'}" if aside else every
            texts.append(f"{every} sound{mended}: {time_text(seconds)}{speed}.")
        if aside:
            texts.insert(0, f"{_caches(aside)} set aside, to be built again on first use.")
        if missed:
            texts.append("But not all that was named could be looked at.")
        self._wrapped(" ".join(texts) or "There is nothing left to check.", "", _GREEN)

    def _wrapped(self, text: str, indent: str, style: str) -> None:
        if self._quiet:
            return
        for line in textwrap.wrap(
            text, self._width, subsequent_indent=indent, break_on_hyphens=False
        ):
            self._page.line(line, style)


def as_data(found: Sequence[Checked], notes: Sequence[str], scanned: int) -> dict[str, Any]:
    """The same as values that JSON holds."""
    mixed = mixed_dtypes(list(found))
    return {
        "sound": all(one.sound for one in found),
        "scanned_bytes": scanned,
        "notes": [*notes, *([mixed] if mixed else [])],
        "checked": [
            {
                **asdict(one),
                "faults": [{"kind": kind, "text": text} for kind, text in one.faults],
                "sound": one.sound,
            }
            for one in found
        ],
    }


def _caches(count: int) -> str:
    return "1 damaged cache was" if count == 1 else f"{count} damaged caches were"


def _short(one: Checked) -> str:
    """The name, of a cache without the tail of its hash."""
    if one.kind == "pair":
        return one.name
    directory, _, key = one.name.rpartition("/")
    return f"cache {one.facts['class']} {one.facts['split']} {key[:_KEY]}… in {directory}"


def _pair_facts(facts: dict[str, Any]) -> str:
    if not facts:
        return ""
    modes = ", with modes" if facts["multimodal"] else ""
    return (
        f"{facts['dtype']}, {count_of(facts['documents'], 'document')}, "
        f"{count_of(facts['sequences'], 'sequence')}, {count_of(facts['tokens'], 'token')}{modes}"
        + (f", checksums {facts['checksums']}" if "checksums" in facts else "")
    )


def _cache_facts(one: Checked) -> str:
    if "arrays" not in one.facts:
        return ""
    arrays = len(one.facts["arrays"])
    return (
        f"{count_of(arrays, 'array')}, {size_text(one.facts['bytes'])}, "
        + ("checksums, " if one.facts["checksums"] else "no checksums, ")
        + ("compared with the data" if one.facts["compared_with_data"] else "compared by itself")
    )
