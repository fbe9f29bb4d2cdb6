"""What `coredata trace` answers, as JSON values, and how it prints them."""

import shutil
from collections import Counter
from typing import Any

import numpy as np

from coredata.datasets import (
    Trace,
    TracePart,
    samples_of_document,
    steps_of_document,
    trace_samples,
    trace_step,
)
from coredata.sampling import SkipList, TrainingSteps
from coredata.tools.demo_page import Page, Stream
from coredata.tools.view_cells import shorten, shorten_left, text_width

_BOLD, _DIM = "\x1b[1m", "\x1b[2m"


def answer_step(dataset: Any, steps: TrainingSteps, step: int) -> dict[str, Any]:
    """Which documents a step saw.

    Raises:
        IndexError: there is no such step.
    """
    trace = trace_step(dataset, steps, step)
    samples = str(SkipList.of(steps.samples(step)))
    return {"question": "step", **_step(steps, step), "samples": samples, **_parts(trace)}


def answer_sample(
    dataset: Any, steps: TrainingSteps, sample: int, until: int | None = None
) -> dict[str, Any]:
    """Which documents a sample is of, and the steps that took it.

    Raises:
        IndexError: there is no such sample.
    """
    number = np.array([sample], np.int64)
    trace = trace_samples(dataset, number)
    taken = [_step(steps, step) for step in steps.taking(number, until).steps.tolist()]
    return {"question": "sample", "sample": sample, "steps": taken, **_parts(trace)}


def answer_document(
    dataset: Any, steps: TrainingSteps, document: int, path: str | None, until: int | None
) -> dict[str, Any]:
    """Which steps saw a document, and what of it.

    Raises:
        IndexError: there is no such document.
        ValueError: no such file in the blend.
    """
    samples = samples_of_document(dataset, document, path)
    seen = steps_of_document(dataset, steps, document, path, until)
    trace = trace_samples(dataset, samples)
    mine = [
        part for part in trace.parts() if part.document == document and path in (None, part.path)
    ]
    by_sample: dict[int, list[TracePart]] = {}
    for part in mine:
        by_sample.setdefault(part.sample, []).append(part)
    return {
        "question": "document",
        "document": document,
        "path": path,
        "samples": len(samples),
        "sightings": [
            {
                "step": step,
                "iteration": step + 1,
                "sample": sample,
                "parts": [vars(part) for part in by_sample[sample]],
            }
            for step, sample in zip(seen.steps.tolist(), seen.samples.tolist(), strict=True)
        ],
    }


def _step(steps: TrainingSteps, step: int) -> dict[str, Any]:
    return {
        "step": step,
        "iteration": step + 1,
        "consumed_before": steps.consumed_before(step),
        "consumed_after": steps.consumed_before(step + 1),
    }


def _parts(trace: Trace) -> dict[str, Any]:
    return {"parts": [vars(part) for part in trace.parts()]}


class TracePage:
    """Prints answers to a stream, in lines no wider than the terminal."""

    def __init__(self, stream: Stream) -> None:
        self._page = Page(stream)
        self._width = max(shutil.get_terminal_size((100, 24)).columns, 40)

    def answer(self, answer: dict[str, Any]) -> None:
        """All of it."""
        if answer["question"] == "document":
            self._document(answer)
            return
        if answer["question"] == "step":
            self._line(_step_text(answer), _BOLD)
            self._line(f"  samples {answer['samples']} (as a skip list takes them)", _DIM)
        else:
            self._line(f"sample {answer['sample']}", _BOLD)
            for step in answer["steps"]:
                self._line(f"  taken in {_step_text(step)}")
            if not answer["steps"]:
                self._line("  taken in no step: it lies beyond the last whole batch")
        self._sources(answer["parts"])
        for part in answer["parts"]:
            self._part(part, f"  sample {part['sample']}")

    def _document(self, answer: dict[str, Any]) -> None:
        where = "" if answer["path"] is None else f" of {answer['path']}"
        seen = answer["sightings"]
        steps = len({one["step"] for one in seen})
        self._line(
            f"document {answer['document']}{where}: in {answer['samples']} samples, of which "
            f"{len(seen)} were taken, in {steps} steps",
            _BOLD,
        )
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
            counted = f", {tokens[path]:,} tokens" if tokens[path] else ""
            text = f": {len(numbers):,} sample{'' if len(numbers) == 1 else 's'}{counted}"
            self._line(f"  {shorten_left(path, self._width - 2 - len(text))}{text}", _DIM)

    def _part(self, part: dict[str, Any], begin: str) -> None:
        text = f", document {part['document']}"
        if part["sequence"] != part["document"]:
            text += f" (sequence {part['sequence']})"
        if part["length"] >= 0:
            text += f", tokens {part['offset']}–{part['offset'] + part['length'] - 1}"
        room = self._width - text_width(begin) - text_width(text) - 2
        path = shorten_left(part["path"] or "made-up data", max(room, 8))
        self._line(f"{begin}: {path}{text}")

    def _line(self, text: str, style: str = "") -> None:
        self._page.line(shorten(text, self._width), style)


def _step_text(step: dict[str, Any]) -> str:
    return (
        f"step {step['step']} (iteration {step['iteration']}): consumed_samples "
        f"{step['consumed_before']:,} to {step['consumed_after']:,}"
    )
