"""The steps of the demo, each with its account on the page."""

import itertools
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coredata.datasets import usage_report
from coredata.datasets.protocol import Dataset
from coredata.preprocess import preprocess
from coredata.storage import atomic_write
from coredata.text import demo_tokenizer
from coredata.tools.demo_page import Page, excerpt
from coredata.tools.demo_run import (
    SPLIT,
    STATE_FILE,
    DemoPlan,
    continue_in_a_new_process,
    digest,
    save,
)
from coredata.tools.demo_sample import boundaries, pieces, telling_sample
from coredata.tools.demo_text import json_lines, library_prose, library_sources, take
from coredata.tools.output import count_of

SHARES = {"code": 0.7, "prose": 0.3}
"""The sources, and the part of the samples that is asked of each."""

_BATCH = 8
_MOST_WORKERS = 2
_WORTH_A_WORKER = 4_000_000
_HEAD, _TAIL = 4, 2


@dataclass(frozen=True)
class Source:
    """One token file of the demo."""

    name: str
    prefix: str
    tokens: int


def tokenise(page: Page, directory: Path, size: int) -> list[Source]:
    """Both sources as JSON lines, and from these as token files."""
    tokenizer = demo_tokenizer()
    page.heading(1, f"Text to tokens, byte-level BPE with {tokenizer.vocab_size:,} tokens")
    library = list(library_sources())
    texts = {"code": take(library, size), "prose": take(library_prose(library), size)}
    sources, rows = [], []
    for name, documents in texts.items():
        path = str(directory / f"{name}.jsonl")
        with atomic_write(path) as file:
            file.writelines(json_lines(documents))
        text = sum(len(text.encode("utf-8", "replace")) for _, text in documents)
        workers = min(_MOST_WORKERS, os.cpu_count() or 1, 1 + text // _WORTH_A_WORKER)
        report = preprocess(
            path,
            str(directory / name),
            tokenizer,
            append_eod=True,
            workers=workers,
            progress=sys.stderr,
        )
        sources.append(Source(name, report.prefixes["text"], report.tokens))
        rows.append(
            (
                name,
                f"{report.documents:,}",
                f"{text / 1e6:,.1f} MB",
                f"{report.tokens:,}",
                f"{text / report.tokens:.2f}",
                f"{text / 1e6 / report.seconds:,.1f}",
                f"{workers}",
            )
        )
    page.table(("", "documents", "text", "tokens", "bytes/token", "MB/s", "processes"), rows)
    page.note(
        "code: the sources of Python's standard library; prose: its help topics and docstrings"
    )
    return sources


def make_blend(
    page: Page, directory: Path, sources: list[Source], sequence_length: int
) -> tuple[DemoPlan, Any]:
    """The run, and its training data: as many tokens as the sources have together."""
    page.heading(2, f"A blend, split {SPLIT}, in samples of {sequence_length:,} tokens")
    total = sum(source.tokens for source in sources)
    plan = DemoPlan(
        prefixes=[source.prefix for source in sources],
        weights=[SHARES[source.name] for source in sources],
        samples=max(total // sequence_length, 2 * _BATCH),
        sequence_length=sequence_length,
        batch_size=_BATCH,
        cache=str(directory / f"indices-{total}"),
    )
    begun = time.perf_counter()
    train, valid, test = plan.datasets()
    seconds = time.perf_counter() - begun
    rows = [
        (
            source.name,
            f"{part.requested_share:.4f}",
            f"{part.achieved_share:.4f}",
            f"{part.drawn:,}",
            f"{part.documents:,}",
            f"{part.tokens:,}",
            f"{part.epochs:.2f}",
        )
        for source, part in zip(sources, usage_report([train]).splits[0].datasets, strict=True)
    ]
    page.table(
        ("train", "share asked", "planned", "samples", "documents", "tokens", "epochs"), rows
    )
    page.note(
        f"train {len(train):,} samples, valid {len(valid):,}, test {len(test):,}; indices built "
        f"(and their code compiled, where it was not) in {seconds:.1f} s"
    )
    return plan, train


def show_sample(page: Page, train: Dataset) -> None:
    """A sample decoded, its document boundaries visible."""
    number, batch = telling_sample(train)
    source = list(SHARES)[int(batch["dataset_id"][0])]
    page.heading(3, f"Training sample {number}, from {source}, decoded")
    bounds = boundaries(batch["cu_seqlens"][0]).tolist()
    parts = pieces(batch["tokens"][0], bounds, demo_tokenizer())
    for position, part in enumerate(parts, start=1):
        lines = excerpt(part.text, _HEAD, _TAIL)
        if part.ends:
            lines.append("<|endoftext|>")
        label = f"document {position} of {len(parts)}: {part.tokens:,} tokens"
        page.box(label, lines, last=position == len(parts))


def read_stop_and_resume(page: Page, directory: Path, plan: DemoPlan, train: Dataset) -> bool:
    """Read half, save the state, read on, and compare with a new process that starts there.

    Returns:
        Whether all batches were the same.
    """
    page.heading(4, f"Batches of {count_of(plan.batch_size, 'sample')}")
    with plan.loader(train) as loader:
        half = len(loader) // 2
        drawn = np.zeros(len(plan.weights), dtype=np.int64)
        begun = time.perf_counter()
        for batch in itertools.islice(loader, half):
            drawn += np.bincount(batch["dataset_id"], minlength=drawn.size)
        rate = half / (time.perf_counter() - begun)
        save(directory, plan, loader.state_dict())
        consumed = loader.consumed_samples
        rest = [digest(batch) for batch in loader]
    page.table(
        ("", "batches", "batches/s", "tokens/s"),
        [
            (
                "read",
                f"{half:,}",
                f"{rate:,.0f}",
                f"{rate * plan.batch_size * plan.sequence_length / 1e6:,.1f} M",
            )
        ],
    )
    achieved = ", ".join(
        f"{name} {count / drawn.sum():.4f}" for name, count in zip(SHARES, drawn, strict=True)
    )
    page.note(f"shares achieved in these: {achieved}")
    page.heading(5, "Stop and go on in a new process")
    page.note(f"state saved after batch {half}: {consumed:,} samples consumed ({STATE_FILE})")
    return _compare(page, half, rest, continue_in_a_new_process(directory))


def _compare(page: Page, before: int, here: list[str], there: list[str]) -> bool:
    differing = [
        number
        for number, (one, other) in enumerate(itertools.zip_longest(here, there), start=before + 1)
        if one != other
    ]
    page.table(
        ("batch", "this process", "new process"),
        [
            (f"{before + k + 1}", here[k], there[k] if k < len(there) else "none")
            for k in sorted({0, 1, len(here) - 1})
            if k < len(here)
        ],
    )
    if differing:
        page.fail(
            f"{len(differing)} of {len(here)} batches differ after the resume, the first is batch "
            f"{differing[0]}"
        )
        return False
    page.good(f"all {len(here):,} batches after the resume are the same, in every field")
    return True
