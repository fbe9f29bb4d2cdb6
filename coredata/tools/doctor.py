"""`coredata doctor`: is this machine ready, and if not, what to do."""

import argparse
import sys

HELP = "look at versions, extras, compiled kernels, limits and cache directories, with remedies"

_EPILOG = """\
Nothing is changed. Name the URLs and files that a run will read, its prefixes and its cache
directory, to have them looked at too. Exit code: 0 nothing will fail, 1 something will, 2 it could
not be looked at.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags; those about data are training's."""
    from coredata.tools.data_flags import add_path_flags
    from coredata.tools.unknown_flags import add_data_flags_passed_over, add_unknown_flags_flag

    parser.epilog = _EPILOG
    parser.allow_abbrev = False
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="URLs and files that will be read"
    )
    add_path_flags(parser.add_argument_group("data", "prefixes that a run opens"))
    parser.add_argument(
        "--data-cache-path",
        action="append",
        default=[],
        metavar="DIR",
        help="cache directory; may be given more than once",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    add_unknown_flags_flag(parser)
    add_data_flags_passed_over(parser)


def run(args: argparse.Namespace) -> int:
    """Look, and print a line for each thing; 1 if something will fail.

    Raises:
        ValueError: a blend that is none.
        FileNotFoundError: no such file with a blend.
    """
    from dataclasses import asdict

    from coredata.tools import doctor_checks as checks
    from coredata.tools.data_blend import blends_from_args, prefixes_of
    from coredata.tools.demo_page import Page
    from coredata.tools.doctor_files import check_local
    from coredata.tools.output import OK, PROBLEMS, print_json

    prefixes = prefixes_of(*blends_from_args(args))
    remote = [prefix for prefix in prefixes if "://" in prefix]
    findings = [
        *checks.check_versions(),
        *checks.check_extras(),
        *checks.check_targets(dict.fromkeys([*args.targets, *remote])),
        *check_local(args.targets, prefixes),
        *checks.check_compiled(),
        *checks.check_open_files(len(prefixes)),
        *(one for path in args.data_cache_path for one in checks.check_cache_directory(path)),
    ]
    faults = sum(finding.level == "fault" for finding in findings)
    if args.json:
        print_json({"faults": faults, "findings": [asdict(finding) for finding in findings]})
        return PROBLEMS if faults else OK
    page = Page(sys.stdout)
    for finding in findings:
        tail = f" → {finding.remedy}" if finding.remedy else ""
        style = {"fault": "\x1b[31m", "note": "\x1b[33m", "ok": ""}[finding.level]
        page.line(f"{finding.level:<5}  {finding.what}: {finding.found}{tail}", style)
    page.line(f"{faults} will fail." if faults else _sound(args))
    return PROBLEMS if faults else OK


def _sound(args: argparse.Namespace) -> str:
    """The end when there are no faults; claims no more than was looked at."""
    given = args.targets or any(value for name, value in vars(args).items() if "data_path" in name)
    given = given or args.data_args_path or args.per_split_data_args_path
    what = "this machine, and names, headers and sizes of local files" if given else "this machine"
    return f"No fault found in what was looked at: {what}."
