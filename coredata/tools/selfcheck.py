"""`coredata selfcheck`: is what is installed here correct, and is your data sound?"""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coredata.testing.checks import CheckResult
    from coredata.testing.checks_data import DataSettings

HELP = "check this installation, and your token files, against reference vectors and invariants"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags, named as the reference's where it has them."""
    parser.add_argument(
        "--data-path",
        nargs="+",
        default=[],
        metavar="PREFIX",
        help="token files to check too, without .bin and .idx; or WEIGHT PREFIX WEIGHT PREFIX …",
    )
    parser.add_argument(
        "--seq-length",
        type=int,
        help="tokens of a sample of your files (default: 1024, less where a file is small)",
    )
    parser.add_argument("--seed", type=int, default=1234, help="random seed (default: 1234)")
    parser.add_argument(
        "--vocab-size", type=int, help="check that every token of your files is below it"
    )
    parser.add_argument(
        "--only-data", action="store_true", help="check nothing but what --data-path names"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")


def run(args: argparse.Namespace) -> int:
    """Run the checks and print how they went; 0 if all passed, 1 if not.

    Raises:
        ValueError: flags that make no sense.
    """
    from coredata.tools.selfcheck_page import SelfcheckPage

    data = _data(args)
    page = SelfcheckPage(sys.stderr if args.json else sys.stdout, quiet=args.json)
    page.begin()
    results = []
    for result in _results(args, data):
        results.append(result)
        page.result(result)
    passed = all(result.passed for result in results)
    rates = _rates(args, data) if passed else []
    page.end(results, rates)
    if args.json:
        from coredata.tools.selfcheck_page import as_data

        print(json.dumps(as_data(results, rates), indent=2))
    return 0 if passed else 1


def _data(args: argparse.Namespace) -> "DataSettings | None":
    """What --data-path and the flags beside it say; None without it."""
    from coredata.blending import get_blend_from_list
    from coredata.testing.checks_data import DataSettings

    if args.seq_length is not None and args.seq_length < 1:
        raise ValueError(f"--seq-length {args.seq_length}: need at least 1, such as 1024")
    if args.vocab_size is not None and args.vocab_size < 1:
        raise ValueError(f"--vocab-size {args.vocab_size}: need at least 1, such as 50257")
    if not 0 <= args.seed < 2**32:
        raise ValueError(f"--seed {args.seed}: need 0 to 4294967295")
    blend = get_blend_from_list(args.data_path or None)
    if blend is None:
        if args.only_data:
            raise ValueError("--only-data: there is no --data-path; name the files to check")
        return None
    prefixes, weights = blend
    return DataSettings(prefixes, weights, args.seq_length, args.seed, args.vocab_size)


def _results(args: argparse.Namespace, data: "DataSettings | None") -> "Iterator[CheckResult]":
    """The results, one by one."""
    from coredata.testing.checks import run_checks
    from coredata.testing.checks_data import run_data_checks
    from coredata.testing.checks_golden import golden_checks
    from coredata.testing.checks_invariants import invariant_checks
    from coredata.testing.checks_masked import masked_golden_checks, masked_invariant_checks

    if not args.only_data:
        yield from run_checks([*golden_checks(), *masked_golden_checks()])
        yield from run_checks([*invariant_checks(args.seed), *masked_invariant_checks(args.seed)])
    if data is not None:
        yield from run_data_checks(data)


def _rates(args: argparse.Namespace, data: "DataSettings | None") -> list:
    """Throughput on the first of the user's files, or on a random corpus."""
    from coredata.testing.checks_data import open_gpt_dataset
    from coredata.testing.checks_invariants import random_gpt_dataset
    from coredata.testing.throughput import measure_throughput

    if data is not None:
        return measure_throughput(open_gpt_dataset(data, data.prefixes[0], 4096))
    dataset = random_gpt_dataset(
        args.seed, 4096, sequence_length=1024, documents=4000, longest=2000
    )
    return measure_throughput(dataset)
