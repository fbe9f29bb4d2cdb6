"""What `coredata view` prints of a sample: its text, with boundaries, loss and positions."""

import os
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from coredata.tools.demo_page import Stream
from coredata.tools.output import count_of
from coredata.tools.view_cells import (
    Cell,
    Line,
    cells,
    fold,
    shorten,
    shorten_left,
    text_width,
)
from coredata.tools.view_sample import PADDED, PlacedPart, SampleView, TokenRow
from coredata.tools.view_text import Unit

_PLAIN, _BOLD, _DIM, _MAGENTA = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[35m"
_SEGMENTS = ("", "\x1b[36m")
"""Styles of the text of segments, in turn."""
_LEARNED, _ESCAPE = "\x1b[1m\x1b[32m", "\x1b[33m"
_SHOWN_PARTS = 200
NARROWEST = 30


def wants_colours(stream: Stream) -> bool:
    """Whether to write colours: to a terminal, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def write_lines(lines: Iterable[Line], stream: Stream, colours: bool) -> None:
    """Print lines, with or without colours; what the stream cannot encode becomes "?"."""
    encoding = stream.encoding or "utf-8"
    for line in lines:
        text = ""
        for style, run in groupby(line, key=lambda cell: cell.style):
            written = "".join(cell.text for cell in run)
            written = written.encode(encoding, "replace").decode(encoding)
            text += f"{style}{written}{_PLAIN}" if colours and style else written
        print(text.rstrip() if not colours else text, file=stream)


def sample_page(view: SampleView, width: int, colours: bool) -> Iterator[Line]:
    """The page of a sample: what it is, where it came from, its text.

    Text that is not learned is dim; without colours it stands between ⟦ and ⟧. Special tokens are
    named between ‹ and ›. Documents, or segments, follow rules that say what they are.

    Args:
        view: the sample.
        width: columns of a line at most; at least 30.
        colours: whether lines will be written with colours.
    """
    width = max(width, NARROWEST)
    yield from _wrapped(_title(view), width, _BOLD)
    fields = ", ".join(f"{name} {shape}" for name, shape in view.fields.items())
    yield from _wrapped(fields, width, _DIM)
    for note in view.notes:
        yield from _wrapped(f"note: {note}", width, _DIM)
    if not colours and any(_masked(row, unit) for row in view.rows for unit in row.units):
        yield from _wrapped("note: text between ⟦ and ⟧ is not learned", width, _DIM)
    placed = all(part.begin is not None for part in view.parts)
    if not placed:
        for part in view.parts[:_SHOWN_PARTS]:
            yield _line(f"from {_where(part, width - 5)}", width, "")
        if len(view.parts) > _SHOWN_PARTS:
            yield _line(f"… {count_of(len(view.parts) - _SHOWN_PARTS, 'more part')}", width, _DIM)
    for row in view.rows:
        yield ()
        yield from _wrapped(_summary(row), width, _BOLD)
        yield from _row_lines(row, view.parts if placed else (), width, colours)


def _title(view: SampleView) -> str:
    text = f"sample {view.sample:,} of {view.samples:,}"
    if view.kept_samples < view.samples and view.kept_number is not None:
        text += f" (number {view.kept_number:,} of the {view.kept_samples:,} kept)"
    if view.blend:
        return f"{text}, a blend of {view.blend:,}; this one is of {view.dataset}"
    return f"{text}, {view.dataset}"


def _summary(row: TokenRow) -> str:
    real = int((row.segments != PADDED).sum())
    text = f"{row.field}: {count_of(len(row.tokens), 'token')}"
    if real < len(row.tokens):
        text += f", {len(row.tokens) - real:,} of them padding"
    if row.loss is not None:
        losses = int(row.loss.sum())
        text += f"; loss at {count_of(losses, 'place')}"
        unseen = losses - int(row.learned.sum()) if row.learned is not None else 0
        if unseen > 0:
            text += f", {unseen:,} of them for a label that is not in the text"
    return text


def _row_lines(
    row: TokenRow, parts: tuple[PlacedPart, ...], width: int, colours: bool
) -> Iterator[Line]:
    rules = {part.begin: part for part in parts}
    several = len(set(row.segments.tolist())) > 1
    digits = max(len(str(len(row.tokens))), 3)
    for segment, run in groupby(row.units, key=lambda unit: int(row.segments[unit.begin])):
        units = list(run)
        begin, end = units[0].begin, units[-1].end
        if segment == PADDED:
            yield _rule(f"padding, places {begin}–{end - 1}", width)
            continue
        if begin in rules:
            yield _rule(_where(rules[begin], width - 6), width)
        elif several:
            yield _rule(f"segment {segment}, places {begin}–{end - 1}", width)
        yield from _text_lines(row, units, width, digits, colours)


def _text_lines(
    row: TokenRow, units: list[Unit], width: int, digits: int, colours: bool
) -> Iterator[Line]:
    """Lines of text, each begun with the place and position of its first unit."""
    content: list[Cell] = []
    masked = False
    for unit in units:
        before, masked = masked, _masked(row, unit)
        if masked != before and not colours:
            content.append(Cell("⟦" if masked else "⟧", 1, place=unit.begin))
        content.extend(_unit_cells(row, unit))
    if masked and not colours:
        content.append(Cell("⟧", 1, place=units[-1].begin))
    margin = digits + (digits + 1 if row.positions is not None else 0) + 3
    for line in fold(content, width - margin):
        yield (*_margin(row, line[0].place, digits), *line)


def _masked(row: TokenRow, unit: Unit) -> bool:
    """Whether a unit is shown as not learned."""
    return row.learned is not None and not row.in_place and not row.learned[unit.begin]


def _unit_cells(row: TokenRow, unit: Unit) -> Iterator[Cell]:
    place = unit.begin
    dim = _DIM if _masked(row, unit) else ""
    if unit.special:
        yield from cells(f"‹{unit.text}›", dim + _MAGENTA, dim + _ESCAPE, place)
    else:
        style = dim or _SEGMENTS[(int(row.segments[place]) - 1) % len(_SEGMENTS)]
        yield from cells(unit.text, style, dim + _ESCAPE, place)
    if place in row.answers:
        yield from cells(f"={row.answers[place]}", _LEARNED, _LEARNED, place)


def _margin(row: TokenRow, place: int, digits: int) -> Line:
    text = f"{place:>{digits}}"
    if row.positions is not None:
        text += f" {int(row.positions[place]):>{digits}}"
    text += " │ "
    return (Cell(text, len(text), _DIM),)


def table_page(view: SampleView, tokenizer: Any, width: int) -> Iterator[Line]:
    """The tokens of a sample one by one: place, position, segment, ids, texts, loss."""
    width = max(width, NARROWEST)
    for row in view.rows:
        yield from _wrapped(_summary(row), width, _BOLD)
        texts = max((width - 40) // 2, 4)
        head = ("place", "pos", "seg", "id", "text", "label", "text", "loss")
        yield _line(_table_row(head, texts), width, _DIM)
        for place, token in enumerate(row.tokens.tolist()):
            label = None if row.labels is None else int(row.labels[place])
            known = label is not None and label >= 0
            values = (
                place,
                "" if row.positions is None else int(row.positions[place]),
                int(row.segments[place]),
                token,
                tokenizer.decode([token]),
                "" if label is None else label,
                tokenizer.decode([label]) if known else "",
                "loss" if row.loss is not None and row.loss[place] else "",
            )
            yield _line(_table_row(values, texts), width, "" if values[-1] else _DIM)


def _table_row(values: tuple[Any, ...], room: int) -> str:
    place, position, segment, token, text, label, label_text, loss = values
    columns = [f"{place!s:>6}", f"{position!s:>6}", f"{segment!s:>3}", f"{token!s:>6} "]
    columns += [_padded(str(text), room), f"{label!s:>6} ", _padded(str(label_text), room)]
    return " ".join([*columns, str(loss)]).rstrip()


def _padded(text: str, room: int) -> str:
    written = shorten(text, room)
    return written + " " * (room - text_width(written))


def _where(placed: PlacedPart, room: int) -> str:
    """A part in words, its path shortened to fit."""
    part = placed.part
    text = f"document {part.document}"
    if part.sequence != part.document:
        text += f" (sequence {part.sequence})"
    if part.length >= 0:
        text += f", tokens {part.offset}–{part.offset + part.length - 1}"
    if part.dataset is not None:
        text += f", sample {part.dataset_sample} of dataset {part.dataset}"
    path = part.path or "made-up data"
    return f"{shorten_left(path, max(room - text_width(text) - 2, 8))}: {text}"


def _rule(text: str, width: int) -> Line:
    label = shorten(f"── {text} ", width)
    return (Cell(label + "─" * (width - text_width(label)), width, _DIM),)


def _line(text: str, width: int, style: str) -> Line:
    written = shorten(text, width)
    return (Cell(written, text_width(written), style),)


def _wrapped(text: str, width: int, style: str) -> Iterator[Line]:
    for line in textwrap.wrap(text, width, break_on_hyphens=False):
        yield _line(line, width, style)


def sample_data(view: SampleView) -> dict[str, Any]:
    """The same as values that JSON holds."""
    return {
        "sample": view.sample,
        "samples": view.samples,
        "kept_number": view.kept_number,
        "dataset": view.dataset,
        "blend": view.blend,
        "fields": dict(view.fields),
        "notes": list(view.notes),
        "parts": [
            {**vars(placed.part), "begin": placed.begin, "end": placed.end} for placed in view.parts
        ],
        "rows": [
            {
                "field": row.field,
                "tokens": row.tokens.tolist(),
                "labels": None if row.labels is None else row.labels.tolist(),
                "loss": None if row.loss is None else row.loss.astype(int).tolist(),
                "learned": None if row.learned is None else row.learned.astype(int).tolist(),
                "positions": None if row.positions is None else row.positions.tolist(),
                "segments": row.segments.tolist(),
                "answers": {str(place): text for place, text in row.answers.items()},
                "units": [[u.begin, u.end, u.text, u.special] for u in row.units],
            }
            for row in view.rows
        ],
    }
