"""`coredata COMMAND ...`: finds the command's module, parses its flags, turns errors into one line.

A command is a module of this package with `HELP` (one line), `add_arguments(parser)` and
`run(args) -> int` (the exit code). Only the module of the command asked for does any real
importing.
"""

import argparse
import difflib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from coredata import __version__
from coredata.tools.data_words import in_flags
from coredata.tools.output import BROKEN_PIPE, EXIT_CODES, INTERRUPTED, USAGE, say
from coredata.tools.streams import discard_output, open_missing, warnings_in_one_line
from coredata.tools.unknown_flags import FLAG, unknown_flags

COMMANDS = (
    "demo",
    "doctor",
    "inspect",
    "merge",
    "prepare-cache",
    "preprocess",
    "selfcheck",
    "sequences",
    "trace",
    "verify",
    "view",
)

_EPILOG = f"""\
`coredata COMMAND --help` tells more. {EXIT_CODES}
Set COREDATA_TRACEBACK=1 for tracebacks.
"""


_WRITTEN = ("output_prefix", "output", "data_cache_path", "per_dataset_sequences_path")
"""Flags that name what commands write."""


_PRINTERS = ("_page.py", "output.py", "main.py")
"""How the files end whose code prints."""


class _Parser(argparse.ArgumentParser):
    """Prints an error alone, without the usage, which is long."""

    def error(self, message: str) -> NoReturn:
        """End with one line."""
        wrong = re.match(r"argument COMMAND: invalid choice: '([^']*)'", message)
        near = difflib.get_close_matches(wrong.group(1), COMMANDS, n=1) if wrong else []
        hint = f"; did you mean {near[0]}?" if near else ""
        flag = re.match(r"argument (?:-\w, )?(--[\w-]+).*: expected one argument", message)
        if flag is not None:
            hint = f"; a value that begins with - is written {flag.group(1)}=VALUE"
        self.exit(USAGE, f"{self.prog}: {message}{hint} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(
        prog="coredata",
        description="Training data for language models, in Megatron's format and sample order.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"coredata {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"coredata.tools.{name.replace('-', '_')}")
        command = subparsers.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run, parser=command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command named in `argv` (default: the process's own) and return its exit code.

    Errors that a user can cause and mend (`ValueError`, `OSError`, `LookupError`, a missing extra)
    are printed as one line and give exit code 2; with COREDATA_TRACEBACK=1 they are raised.
    Warnings are printed as one line. Closed streams are stood in for.
    """
    open_missing()
    code: int | SystemExit
    try:
        try:
            code = _run(argv)
        except SystemExit as end:  # of argparse, after help
            code = end
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        return BROKEN_PIPE
    if isinstance(code, SystemExit):
        raise code
    return code


def _run(argv: Sequence[str] | None) -> int:
    """Run the command, and turn its errors into a line and an exit code."""
    args, rest = build_parser().parse_known_args(argv)
    if rest and not _passed_over(args, rest):
        return USAGE
    try:
        with warnings_in_one_line(args.command):
            code = int(args.run(args))
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        say(args.command, "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except (ValueError, OSError, LookupError, ImportError) as error:
        if os.environ.get("COREDATA_TRACEBACK"):
            raise
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        say(args.command, f"{in_flags(str(text))}{_place(args, error)}")
        return USAGE
    except MemoryError as error:
        if os.environ.get("COREDATA_TRACEBACK"):
            raise
        found = str(error) or "no more could be had"
        say(args.command, f"not enough memory: {found}. Ask for fewer samples or smaller sizes")
        return USAGE


def _place(args: argparse.Namespace, error: Exception) -> str:
    """What was written when a disk was full, if the error does not say; else ""."""
    from coredata.formats.full_disk import is_full

    if not is_full(error) or getattr(error, "filename", None) is not None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    if frames and os.path.basename(frames[-1].filename).endswith(_PRINTERS):
        discard_output()
        return ", writing standard output"
    given = {f"--{name.replace('_', '-')}": getattr(args, name, None) for name in _WRITTEN}
    places = [f"{flag} {value}" for flag, value in given.items() if value]
    return f", writing to {' or '.join(places)}" if places else ""


def _passed_over(args: argparse.Namespace, rest: Sequence[str]) -> bool:
    """Whether the command may go on without the words that its parser does not know; says so."""
    help_text = args.parser.format_help()
    unknown = unknown_flags(rest, re.findall(r"--[a-z][a-z0-9-]*", help_text))
    if getattr(args, "ignore_unknown_flags", False):
        say(args.command, unknown.note())
        return True
    refusal = unknown.refusal(tolerable=FLAG in help_text)
    say(args.command, f"{refusal}. See coredata {args.command} --help")
    return False


if __name__ == "__main__":
    sys.exit(main())
