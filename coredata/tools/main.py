"""`coredata COMMAND ...`: finds the command's module, parses its flags, turns errors into one line.

A command is a module of this package with `HELP` (one line), `add_arguments(parser)` and
`run(args) -> int` (the exit code). Only the module of the command asked for does any real
importing.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from coredata import __version__

COMMANDS = ("demo", "merge", "preprocess", "selfcheck", "verify")


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="coredata",
        description="Training data for language models, in Megatron's format and sample order.",
        epilog="`coredata COMMAND --help` tells more. Set COREDATA_TRACEBACK=1 for tracebacks.",
    )
    parser.add_argument("--version", action="version", version=f"coredata {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"coredata.tools.{name}")
        command = subparsers.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command named in `argv` (default: the process's own) and return its exit code.

    Errors that a user can cause and mend (`ValueError`, `OSError`, `LookupError`, a missing extra)
    are printed as one line and give exit code 2; with COREDATA_TRACEBACK=1 they are raised.
    """
    args = build_parser().parse_args(argv)
    try:
        return args.run(args)
    except KeyboardInterrupt:
        print(f"coredata {args.command}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, LookupError, ImportError) as error:
        if os.environ.get("COREDATA_TRACEBACK"):
            raise
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"coredata {args.command}: {text}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
