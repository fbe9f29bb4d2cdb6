"""`coredata merge`: several token files into one."""

import argparse

HELP = "merge several .bin/.idx pairs into one"

_EPILOG = """\
Tokens are streamed, and the output is verified from end to end. A merge onto a local disk that was
killed goes on where it was when the same command is given again. Exit code: 0 done, 2 it could not
be done, 130 interrupted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags, named as the reference's where it has them."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--input",
        nargs="+",
        required=True,
        metavar="PREFIX",
        help="a directory, whose pairs are taken in the order of their names; or prefixes (paths "
        "or URLs without .bin and .idx), in the order given",
    )
    parser.add_argument("--output-prefix", required=True, metavar="PREFIX", help="path or URL")
    parser.add_argument(
        "--multimodal",
        action="store_true",
        help="expect files with modes (they are recognised without it)",
    )
    parser.add_argument(
        "--widen",
        action="store_true",
        help="allow different dtypes, and write the narrowest that holds them all",
    )
    parser.add_argument(
        "--write-checksums",
        action="store_true",
        help="also write the checksums of the output, to .crc beside it, for readers of a URL to "
        "find flipped bytes with",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")


def run(args: argparse.Namespace) -> int:
    """Do what the flags say; print what came out on standard output."""
    from coredata.formats import has_modes, merge
    from coredata.tools.output import OK, count_of, print_json, progress, size_text
    from coredata.tools.output_prefix import check_pair_prefix

    check_pair_prefix(args.output_prefix)
    prefixes = [prefix for path in args.input for prefix in _prefixes(path)]
    if args.multimodal:
        for prefix in prefixes:
            if not has_modes(prefix):
                raise ValueError(f"{prefix} has no modes, but --multimodal is given; leave it out")
    state = [0, 0]

    def told(done: int, total: int) -> None:
        state[:] = done, total

    def look() -> str:
        done, total = state
        if done == total:
            return "verifying" if total else "reading indices"
        return f"{done / total:.0%} of {size_text(total)}"

    with progress(look):
        merged = merge(
            prefixes,
            args.output_prefix,
            args.widen,
            checksums=args.write_checksums,
            progress=told,
        )
    if args.json:
        print_json({"inputs": prefixes, **vars(merged)})
        return OK
    print(
        f"merged {count_of(len(prefixes), 'pair')} into {args.output_prefix}.bin/.idx: "
        f"{count_of(merged.documents, 'document')}, "
        f"{count_of(merged.sequences, 'sequence')}, {count_of(merged.tokens, 'token')}"
    )
    return OK


def _prefixes(path: str) -> list[str]:
    """The pairs in a directory, by name; anything else is a prefix itself."""
    from coredata.storage import expand, is_directory, join

    if not is_directory(path):
        return [path]
    halves = {
        suffix: {
            name.removesuffix(suffix) for name in expand(join(path, "*")) if name.endswith(suffix)
        }
        for suffix in (".bin", ".idx")
    }
    for lone in sorted(halves[".bin"] ^ halves[".idx"]):
        missing = ".idx" if lone in halves[".bin"] else ".bin"
        raise ValueError(
            f"{lone}{missing} is missing beside its other half; move the half away, or name the "
            "prefixes to merge one by one"
        )
    if not halves[".bin"]:
        raise ValueError(f"{path} holds no .bin/.idx pairs; name prefixes, or another directory")
    return sorted(halves[".bin"])
