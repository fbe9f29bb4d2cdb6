"""`coredata prepare-cache`: build every index that a training run will need."""

import argparse
import os
import sys

HELP = "build every index that a training run needs, from the same flags"

_EPILOG = """\
Paste the data part of the launch script; with --ignore-unknown-flags, all of it. Sample counts
follow from batch size, steps and evaluations as in training, or are given with --num-samples.
--dataloader-fast-cache-load and --dataloader-defer-npy-index-mmap are for the run that uses the
cache, and are passed over here. Exit code: 0 done, 2 it could not be done, 130 interrupted; what
was built until then is found by the next run.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags: those of training, and a few more."""
    from coredata.tools.data_arguments import add_data_arguments
    from coredata.tools.unknown_flags import add_unknown_flags_flag

    parser.epilog = _EPILOG
    group = parser.add_argument_group("preparing")
    group.add_argument(
        "--prepare-cache-world-size",
        type=int,
        metavar="N",
        help="ranks of the run to come, from which the batch size may follow (default: WORLD_SIZE)",
    )
    group.add_argument(
        "--packing-plan",
        action="store_true",
        help="tokenise every row once, and keep the lengths and which samples share a pack: with "
        "--use-varlen-dataset, or --sft and a --sequence-packing-scheduler",
    )
    group.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    add_unknown_flags_flag(parser)
    add_data_arguments(parser)
    parser.set_defaults(num_dataset_builder_threads=min(os.cpu_count() or 1, 16))


def run(args: argparse.Namespace) -> int:
    """Build, and print what there is now.

    Raises:
        ValueError: flags that make no sense, or nothing to build.
        FileNotFoundError: a file is missing.
        IndexCacheError: the cache cannot be written.
    """
    from coredata.tools.output import OK, print_json, say
    from coredata.tools.prepare_cache_page import as_data, page
    from coredata.tools.prepare_cache_run import prepare

    prepared = prepare(args, note=lambda text: say("prepare-cache", text))
    if args.json:
        print_json(as_data(prepared))
    else:
        for line in page(prepared):
            print(line, file=sys.stdout)
    return OK
