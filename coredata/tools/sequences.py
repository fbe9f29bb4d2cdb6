"""`coredata sequences`: counts of every prefix as one file, so that a start reads no headers."""

import argparse
import json

HELP = "write sequence and document counts of every prefix as JSON, for a faster start"

_EPILOG = """\
Training and `coredata prepare-cache` take the file as --per-dataset-sequences-path, and then open
token files only when a sample is read. Exit code: 0 done, 2 it could not be done.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags, named as the reference's."""
    from coredata.tools.data_flags import add_path_flags
    from coredata.tools.unknown_flags import add_data_flags_passed_over, add_unknown_flags_flag

    parser.epilog = _EPILOG
    parser.allow_abbrev = False
    add_path_flags(parser.add_argument_group("data", "exactly one of the ways to name files"))
    parser.add_argument(
        "--per-dataset-sequences-path",
        required=True,
        metavar="FILE",
        help="the JSON file to write: {prefix: [sequences, documents + 1]}",
    )
    parser.add_argument("--json", action="store_true", help="print the counts too")
    add_unknown_flags_flag(parser)
    add_data_flags_passed_over(parser)


def run(args: argparse.Namespace) -> int:
    """Count, and write the file.

    Raises:
        ValueError: no way to name files, or two.
        FileNotFoundError: a pair is missing; the text names what is near.
        IndexedDatasetError: a header that is not one.
    """
    from coredata.storage import atomic_write
    from coredata.tools.data_blend import blends_from_args, check_pairs, prefixes_of
    from coredata.tools.data_checks import check_one_way
    from coredata.tools.output import OK, count_of, print_json

    check_one_way(args)
    prefixes = prefixes_of(*blends_from_args(args))
    check_pairs(prefixes)
    counts = count_sequences(prefixes)
    with atomic_write(args.per_dataset_sequences_path) as file:
        file.write(json.dumps(counts, indent=1).encode())
    if args.json:
        print_json(counts)
    else:
        total = sum(sequences for sequences, _ in counts.values())
        print(
            f"{count_of(len(counts), 'prefix')} with {count_of(total, 'sequence')}: "
            f"{args.per_dataset_sequences_path}"
        )
    return OK


def count_sequences(prefixes: list[str]) -> dict[str, list[int]]:
    """Of each prefix the sequences and the entries of the document list, as its header says.

    Headers are read by several threads, since each may be a request over a network.

    Raises:
        MissingFileError: a pair of which a file is missing.
        IndexedDatasetError: a header that is not one.
    """
    from concurrent.futures import ThreadPoolExecutor

    from coredata.tools.output import progress

    done = 0
    counts = {}
    with (
        progress(lambda: f"{done:,} of {len(prefixes):,} headers"),
        ThreadPoolExecutor(min(16, max(len(prefixes), 1))) as pool,
    ):
        for prefix, found in zip(prefixes, pool.map(_counts, prefixes), strict=True):
            counts[prefix] = found
            done += 1
    return counts


def _counts(prefix: str) -> list[int]:
    import numpy as np

    from coredata.formats.index import read_header
    from coredata.formats.layout import HEADER
    from coredata.storage import open_reader

    path = f"{prefix}.idx"
    reader = open_reader(path)
    head = np.frombuffer(reader.read(0, min(reader.size, HEADER.size)), np.uint8)
    _, sequences, documents = read_header(path, head)
    return [sequences, documents]
