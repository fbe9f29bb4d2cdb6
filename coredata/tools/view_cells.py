"""Text on a terminal: how wide it is, what must be escaped, and lines that keep to a width."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """Characters that stay together on a line.

    Attributes:
        text: what is written.
        width: columns that it takes.
        style: its colour, as an escape sequence, or "".
        ends_line: whether the line ends after it.
        place: place of the token that it is of.
    """

    text: str
    width: int
    style: str = ""
    ends_line: bool = False
    place: int = 0


Line = tuple[Cell, ...]


def character_width(character: str) -> int:
    """Columns of a printable character: 0 for marks on the one before, 2 for wide ones."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def text_width(text: str) -> int:
    """Columns of printable text."""
    return sum(map(character_width, text))


def escaped(character: str) -> str:
    r"""How a character is written: control and format characters as Python does, such as "\n"."""
    if character == "\\" or character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def cells(text: str, style: str, escape_style: str, place: int = 0) -> Iterator[Cell]:
    """The cells of a text; escapes have a style of their own, and a line ends after a newline."""
    for character in text:
        written = escaped(character)
        if written == character:
            yield Cell(character, character_width(character), style, False, place)
        else:
            yield Cell(written, len(written), escape_style, character == "\n", place)


def fold(content: Iterable[Cell], width: int) -> Iterator[Line]:
    """Lines of at most `width` columns, broken where a cell ends its line or does not fit."""
    line: list[Cell] = []
    used = 0
    for cell in content:
        if line and used + cell.width > width:
            yield tuple(line)
            line, used = [], 0
        line.append(cell)
        used += cell.width
        if cell.ends_line:
            yield tuple(line)
            line, used = [], 0
    if line:
        yield tuple(line)


def shorten(text: str, width: int) -> str:
    """Escaped, on one line, and at most `width` columns wide."""
    written = "".join(map(escaped, text))
    if text_width(written) <= width:
        return written
    kept, used = "", 0
    for character in written:
        used += character_width(character)
        if used > width - 1:
            break
        kept += character
    return f"{kept}…" if width > 0 else ""


def shorten_left(text: str, width: int) -> str:
    """The same, with the beginning left out: of paths, the end tells more."""
    written = "".join(map(escaped, text))
    if text_width(written) <= width:
        return written
    kept, used = "", 0
    for character in reversed(written):
        used += character_width(character)
        if used > width - 1:
            break
        kept = character + kept
    return f"…{kept}" if width > 0 else ""
