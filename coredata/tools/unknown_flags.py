"""Flags of a training script that are not about data: passed over on demand, and named."""

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FLAG = "--ignore-unknown-flags"


@dataclass(frozen=True)
class UnknownFlags:
    """What was on a command line that its parser does not know.

    Attributes:
        flags: flags with what follows each, in order, such as "--lr 3e-4".
        doubts: flags that look like a known one, and that one.
    """

    flags: tuple[str, ...]
    doubts: tuple[tuple[str, str], ...]

    def note(self) -> str:
        """One sentence that names them all."""
        text = f"passed over, as not about data: {', '.join(self.flags)}"
        if self.doubts:
            near = "; ".join(f"{flag} looks like {known}" for flag, known in self.doubts)
            text += f". Is one misspelt? {near}"
        return text

    def refusal(self, tolerable: bool) -> str:
        """Why they are refused; `tolerable` if the command could pass over them."""
        text = f"unknown: {', '.join(self.flags)}"
        if self.doubts:
            text += f" (did you mean {', '.join(known for _, known in self.doubts)}?)"
        if tolerable:
            text += f". To paste a training script's flags, add {FLAG}"
        return text


def add_unknown_flags_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag that makes a command pass over what it does not know."""
    parser.add_argument(
        FLAG,
        action="store_true",
        help="pass over flags of a training script that are not about data, and name them",
    )


def add_data_flags_passed_over(parser: argparse.ArgumentParser) -> None:
    """Let a command that reads only the names of files take every other data flag, unused.

    Call it when the command's own flags are there; they keep their meaning.
    """
    from coredata.tools.data_arguments import add_data_arguments

    own = set(parser._option_string_actions)
    others = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_data_arguments(others)
    for action in others._actions:
        flags = [flag for flag in action.option_strings if flag not in own]
        if flags:
            parser.add_argument(
                *flags,
                dest=f"passed_over_{action.dest}",
                nargs=0 if action.nargs == 0 else action.nargs,
                action=_PassedOver,
                help=argparse.SUPPRESS,
            )


class _PassedOver(argparse.Action):
    """Takes what follows a flag, and leaves it."""

    def __call__(self, *arguments: Any, **options: Any) -> None:
        """Leave it."""


def unknown_flags(rest: Sequence[str], known: Sequence[str]) -> UnknownFlags:
    """Sort out what `parse_known_args` left.

    Args:
        rest: the words left over.
        known: the flags that the parser knows.
    """
    flags: list[str] = []
    doubts: list[tuple[str, str]] = []
    for word in rest:
        if word.startswith("--") or not flags:
            flags.append(word)
            name = word.partition("=")[0]
            near = next((flag for flag in known if _misspelt(name, flag)), None)
            if near is not None:
                doubts.append((name, near))
        else:
            flags[-1] += f" {word}"
    return UnknownFlags(tuple(flags), tuple(doubts))


def _misspelt(flag: str, known: str) -> bool:
    """Whether every word of `flag` is much like that of `known`: not so --save-interval and
    --eval-interval."""
    words, others = flag.split("-"), known.split("-")
    return len(words) == len(others) and all(map(_alike, words, others))


def _alike(word: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, word, other).ratio() >= 0.7
