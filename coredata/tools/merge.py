"""`coredata merge`: several token files into one."""

import argparse

HELP = "merge several .bin/.idx pairs into one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags, named as the reference's where it has them."""
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


def run(args: argparse.Namespace) -> int:
    """Do what the flags say; print what came out on standard output."""
    from coredata.formats import has_modes, merge

    prefixes = [prefix for path in args.input for prefix in _prefixes(path)]
    if args.multimodal:
        for prefix in prefixes:
            if not has_modes(prefix):
                raise ValueError(f"{prefix} has no modes, but --multimodal is given; leave it out")
    merged = merge(prefixes, args.output_prefix, args.widen)
    print(
        f"merged {len(prefixes):,} pairs into {args.output_prefix}.bin/.idx: "
        f"{merged.documents:,} documents, {merged.sequences:,} sequences, {merged.tokens:,} tokens"
    )
    return 0


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
