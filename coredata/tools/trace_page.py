"""What `coredata trace` answers, as JSON values, and how it prints them."""

import os
import shutil
import textwrap
from collections import Counter
from typing import Any

import numpy as np

from coredata.datasets import (
    Trace,
    WithoutSamples,
    samples_of_document,
    trace_samples,
)
from coredata.sampling import SkipList, TrainingSteps
from coredata.tools.demo_page import Page, Stream
from coredata.tools.output import count_of
from coredata.tools.packed_steps import PackedSteps
from coredata.tools.skip_samples import find_sample, original_numbers
from coredata.tools.view_cells import escaped, shorten_left, text_width

_BOLD, _DIM = "\x1b[1m", "\x1b[2m"
_LEAST_PATH = 12
_UNLIMITED = 1 << 20

Steps = TrainingSteps | PackedSteps
"""Steps of plain batches, or of packed rows."""


def answer_step(dataset: Any, steps: Steps, step: int) -> dict[str, Any]:
    """Which documents a step saw.

    Raises:
        IndexError: there is no such step.
    """
    kept = steps.samples(step)
    trace = trace_samples(dataset, kept)
    samples = str(SkipList.of(original_numbers(dataset, kept)))
    answer = {"question": "step", **_step(steps, step), "samples": samples}
    if isinstance(dataset, WithoutSamples):
        answer["kept_numbers"] = str(SkipList.of(kept))
    return {**answer, "parts": _parts(dataset, trace, steps)}


def answer_sample(
    dataset: Any, steps: Steps, sample: int, until: int | None = None
) -> dict[str, Any]:
    """Which documents a sample is of, and the steps that took it; by its original number.

    Raises:
        IndexError: there is no such sample.
    """
    found = find_sample(dataset, sample)
    trace = trace_samples(found.dataset, np.array([found.number], np.int64))
    parts = _parts(found.dataset, trace)
    answer: dict[str, Any] = {"question": "sample", "sample": sample, "until_step": until}
    taken: list[dict[str, Any]] = []
    if found.kept is not None:
        number = np.array([found.kept], np.int64)
        taken = [_step(steps, step) for step in steps.taking(number, until).steps.tolist()]
        if isinstance(steps, PackedSteps):
            row = steps.rows_of(number).get(found.kept)
            parts = [{**part, "row": row} for part in parts]
    if isinstance(dataset, WithoutSamples):
        answer |= {"kept_number": found.kept, "skipped": found.kept is None}
        parts = [{**part, "kept_number": found.kept} for part in parts]
    return {**answer, "steps": taken, "parts": parts}


def answer_document(
    dataset: Any, steps: Steps, document: int, path: str | None, until: int | None
) -> dict[str, Any]:
    """Which steps saw a document, and what of it.

    Raises:
        IndexError: there is no such document.
        ValueError: no such file in the blend.
    """
    samples = samples_of_document(dataset, document, path)
    seen = steps.taking(samples, until)
    trace = trace_samples(dataset, samples)
    by_sample: dict[int, list[dict[str, Any]]] = {}
    for part in _parts(dataset, trace, steps):
        if part["document"] == document and path in (None, part["path"]):
            by_sample.setdefault(part["sample"], []).append(part)
    numbers = original_numbers(dataset, seen.samples)
    return {
        "question": "document",
        "document": document,
        "path": path,
        "samples": len(samples),
        "skipped_samples": _with_skipped(dataset, document, path) - len(samples),
        "sightings": [
            {
                "step": step,
                "iteration": step + 1,
                "sample": sample,
                "parts": by_sample[sample],
            }
            for step, sample in zip(seen.steps.tolist(), numbers.tolist(), strict=True)
        ],
    }


def _with_skipped(dataset: Any, document: int, path: str | None) -> int:
    """How many samples hold a document, those on the skip list among them."""
    whole = dataset.dataset if isinstance(dataset, WithoutSamples) else dataset
    return len(samples_of_document(whole, document, path))


def _step(steps: Steps, step: int) -> dict[str, Any]:
    if isinstance(steps, PackedSteps):
        rows = {"rows_before": steps.rows_before(step), "rows_after": steps.rows_before(step + 1)}
        return {"step": step, "iteration": step + 1, "packer": steps.packer, **rows}
    return {
        "step": step,
        "iteration": step + 1,
        "consumed_before": steps.consumed_before(step),
        "consumed_after": steps.consumed_before(step + 1),
    }


def _parts(dataset: Any, trace: Trace, steps: Steps | None = None) -> list[dict[str, Any]]:
    """The parts of samples; with a skip list, by original numbers and those among the kept."""
    parts = [dict(vars(part)) for part in trace.parts()]
    if isinstance(steps, PackedSteps):
        rows = steps.rows_of(np.unique(trace.samples))
        parts = [{**part, "row": rows.get(part["sample"])} for part in parts]
    if isinstance(dataset, WithoutSamples):
        for part, number in zip(parts, dataset.original(trace.samples).tolist(), strict=True):
            part["kept_number"], part["sample"] = part["sample"], number
    return parts


class TracePage:
    """Prints answers to a stream; where lines have a width, long ones are wrapped, not cut."""

    def __init__(self, stream: Stream) -> None:
        self._page = Page(stream)
        narrow = stream.isatty() or "COLUMNS" in os.environ
        width = max(shutil.get_terminal_size((100, 24)).columns, 40)
        self._width = width if narrow else _UNLIMITED

    def answer(self, answer: dict[str, Any]) -> None:
        """All of it."""
        if answer["question"] == "document":
            self._document(answer)
            return
        if answer["question"] == "step":
            self._line(_step_text(answer), _BOLD)
            self._line(f"  samples {answer['samples']} (as a skip list takes them)", _DIM)
            kept = answer.get("kept_numbers", answer["samples"])
            if kept != answer["samples"]:
                self._line(f"  numbers {kept} of the samples that the skip list keeps", _DIM)
        else:
            self._sample(answer)
        self._sources(answer["parts"])
        for part in answer["parts"]:
            self._part(part, f"  sample {part['sample']}")

    def _sample(self, answer: dict[str, Any]) -> None:
        kept = answer.get("kept_number", answer["sample"])
        more = "" if kept in (None, answer["sample"]) else f" (number {kept} of those kept)"
        self._line(f"sample {answer['sample']}{more}", _BOLD)
        for step in answer["steps"]:
            self._line(f"  taken in {_step_text(step)}")
        if kept is None:
            self._line("  taken in no step: it is on the skip list")
        elif not answer["steps"]:
            until = answer["until_step"]
            among = "" if until is None else f" of the first {until:,}"
            self._line(f"  taken in no step{among}: it lies beyond these, or the last whole batch")

    def _document(self, answer: dict[str, Any]) -> None:
        where = "" if answer["path"] is None else f" of {answer['path']}"
        seen = answer["sightings"]
        steps = len({one["step"] for one in seen})
        found = (
            f"in {count_of(answer['samples'], 'sample')}, of which {len(seen):,} "
            f"{'was' if len(seen) == 1 else 'were'} taken, in {count_of(steps, 'step')}"
        )
        skipped = answer["skipped_samples"]
        are = "is" if skipped == 1 else "are"
        if skipped:
            found += f"; {count_of(skipped, 'more sample')} with it {are} on the skip list"
        if skipped and not answer["samples"]:
            found = f"in no step: {count_of(skipped, 'sample')} with it {are} on the skip list"
        elif not answer["samples"]:
            found = "in no sample of this split: its tokens are another split's, or not drawn"
        self._line(f"document {answer['document']}{where}: {found}", _BOLD)
        for one in seen:
            for part in one["parts"]:
                place = f"  step {one['step']} (iteration {one['iteration']}), sample"
                self._part(part, f"{place} {one['sample']}")

    def _sources(self, parts: list[dict[str, Any]]) -> None:
        """Samples and tokens of each file."""
        tokens: Counter[str] = Counter()
        samples: dict[str, set[int]] = {}
        for part in parts:
            path = part["path"] or "made-up data"
            tokens[path] += max(part["length"], 0)
            samples.setdefault(path, set()).add(part["sample"])
        for path, numbers in samples.items():
            counted = f", {count_of(tokens[path], 'token')}" if tokens[path] else ""
            text = f": {count_of(len(numbers), 'sample')}{counted}"
            room = max(self._width - 2 - len(text), _LEAST_PATH)
            self._line(f"  {shorten_left(path, room)}{text}", _DIM)

    def _part(self, part: dict[str, Any], begin: str) -> None:
        text = f"document {part['document']}"
        if part.get("row") is not None:
            begin = begin.replace("sample", f"row {part['row']}, sample", 1)
        if part["sequence"] != part["document"]:
            text += f" (sequence {part['sequence']})"
        if part["length"] >= 0:
            text += f", tokens {part['offset']}–{part['offset'] + part['length'] - 1}"
        path = part["path"] or "made-up data"
        room = self._width - text_width(begin) - text_width(text) - 4
        if room >= min(text_width(path), _LEAST_PATH):
            self._line(f"{begin}: {shorten_left(path, room)}, {text}")
            return
        # On lines of its own, where one is too narrow.
        self._line(f"{begin}:")
        self._line(f"    {shorten_left(path, self._width - 5)},")
        self._line(f"    {text}")

    def _line(self, text: str, style: str = "") -> None:
        """A line, or several that are indented further."""
        indent = " " * (len(text) - len(text.lstrip()))
        lines = textwrap.wrap(
            "".join(map(escaped, text.strip())),
            self._width,
            initial_indent=indent,
            subsequent_indent=f"{indent}    ",
            break_on_hyphens=False,
        )
        for line in lines:
            self._page.line(line, style)


def _step_text(step: dict[str, Any]) -> str:
    if "rows_before" in step:
        last = step["rows_after"] - 1
        return (
            f"step {step['step']} (iteration {step['iteration']}): rows {step['rows_before']:,} to "
            f"{last:,}, packed by {step['packer']}"
        )
    return (
        f"step {step['step']} (iteration {step['iteration']}): consumed_samples "
        f"{step['consumed_before']:,} to {step['consumed_after']:,}"
    )
