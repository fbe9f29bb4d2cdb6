"""`coredata verify`: are token files and caches what they should be?"""

import argparse
import sys

HELP = "check .bin/.idx pairs and index caches, and repair indices where that is safe"

_EPILOG = """\
Checked are: headers and sizes, every length and pointer, the document list, with a vocabulary size
every id, and the checksums beside a pair, if there are any; of caches the description, the
checksums, that each document comes once an epoch, that samples follow each other, that shuffles are
permutations. A directory is looked through with all that is in it. Exit code: 0 all is sound (or
was repaired; a damaged cache is repaired by renaming its files, and built again on first use), 1
something is damaged, 2 nothing is at one of the paths, or something could not be read or written;
the others are checked all the same.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="prefix of a pair (or one of its files), cache, or directory of any of these",
    )
    parser.add_argument(
        "--vocab-size", type=int, metavar="N", help="check too that every token id is below N"
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="write a new .idx where its content is certain (a short document list, wrong "
        "pointers; a missing one from --eod and --dtype, if neither the ids nor PREFIX.crc speak "
        "against them) and keep the old one under another name; rename the files of damaged "
        "caches, so that they are built again",
    )
    parser.add_argument(
        "--eod", type=int, metavar="ID", help="id that ends documents, for --repair"
    )
    parser.add_argument(
        "--dtype",
        choices=("uint8", "uint16", "int32", "int64"),
        help="dtype of the tokens of a pair whose .idx is missing, for --repair",
    )
    parser.add_argument(
        "--write-checksums",
        action="store_true",
        help="write the checksums of the blocks of each sound pair to PREFIX.crc, to be compared "
        "from then on; those that exist are compared and kept (remove a PREFIX.crc to renew it)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")


def run(args: argparse.Namespace) -> int:
    """Check and print; 0 if all is sound in the end, 1 if not, 2 if that is not known.

    Raises:
        ValueError: flags that make no sense.
    """
    from coredata.tools.output import OK, PROBLEMS, USAGE, print_json, progress, say, size_text
    from coredata.tools.verify_page import VerifyPage, as_data
    from coredata.tools.verify_run import Checked, RepairOptions, check_all
    from coredata.tools.verify_targets import find_present

    _check_flags(args)
    targets, missing = find_present([path.rstrip("/") or path for path in args.paths])
    options = RepairOptions(args.eod, args.dtype, args.vocab_size) if args.repair else None
    page = VerifyPage(sys.stdout, quiet=args.json)
    scanned = 0

    def count(size: int) -> None:
        nonlocal scanned
        scanned += size

    found: list[Checked] = []

    def look() -> str:
        return (
            f"{len(found):,} of {len(targets.pairs) + len(targets.caches):,} checked, "
            f"{size_text(scanned)} of tokens looked through"
        )

    with progress(look):
        for one in check_all(targets, args.vocab_size, options, count, args.write_checksums):
            found.append(one)
            page.checked(one)
    if found or not (missing or targets.unread):
        page.end(found, targets.notes, scanned, len(missing) + len(targets.unread))
    if args.json:
        data = as_data(found, targets.notes, scanned)
        data["sound"] = data["sound"] and not (missing or targets.unread)
        print_json({**data, "missing": list(missing), "unread": list(targets.unread)})
    for text in (*missing, *targets.unread):
        say("verify", text)
    if missing or targets.unread or any(one.unread or one.unwritten for one in found):
        return USAGE
    return PROBLEMS if any(one.damaged for one in found) else OK


def _check_flags(args: argparse.Namespace) -> None:
    if args.vocab_size is not None and args.vocab_size < 1:
        raise ValueError(f"--vocab-size {args.vocab_size}: need at least 1, such as 50257")
    for name in ("eod", "dtype"):
        if getattr(args, name) is not None and not args.repair:
            raise ValueError(f"--{name} is for repairs; add --repair, or leave it out")
