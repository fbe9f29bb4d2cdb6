"""`coredata view`: a sample as a model sees it, and where every part of it came from."""

import argparse
import shutil
import sys

HELP = "show samples of any configuration as text: documents, loss mask, positions, provenance"

_EPILOG = """\
Flags are those of training; the sample is the one that training would read. Its number is the
original one, which a skip list takes, also while one is active. Text that is learned is bright:
where labels are the next tokens, what the place before it predicts with loss, so that the first
token never is. Other text is dim, or stands between ⟦ and ⟧ without colours (in a pipe, or with
NO_COLOR set). Of BERT, what belongs in a place stands behind "=". With --table, and as "loss" in
--json, loss is told at the place that predicts. Control characters are shown escaped. At the left
of each line: the place of its first token, and its position id.
Exit code: 0 done, 2 it could not be done.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags: those of training, and what to show."""
    from coredata.tools.data_arguments import add_data_arguments
    from coredata.tools.split_flags import add_split_arguments

    parser.epilog = _EPILOG
    parser.add_argument(
        "--sample",
        type=int,
        nargs="+",
        required=True,
        metavar="K",
        help="numbers of samples, from 0; the original ones, with a skip list too",
    )
    parser.add_argument("--table", action="store_true", help="one line for each token, with ids")
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    add_split_arguments(parser)
    add_data_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read the samples and print them.

    Raises:
        IndexError: a sample that does not exist.
        ValueError: flags that make no sense; a sample that cannot be made.
        FileNotFoundError: a file is missing.
    """
    from coredata.tools.opened_data import open_data
    from coredata.tools.output import OK, print_json, progress, say
    from coredata.tools.skip_samples import read_skip_list, without
    from coredata.tools.view_page import (
        sample_data,
        sample_page,
        table_page,
        wants_colours,
        write_lines,
    )
    from coredata.tools.view_sample import view_sample

    skip = read_skip_list(args.skip_samples if args.which == "train" else None)
    with progress(lambda: "opening datasets"):
        data = open_data(args)
        dataset = without(data.split(args.which, args.set), skip)
    for note in data.notes:
        say("view", note)
    views = [view_sample(dataset, sample, data.tokenizer) for sample in args.sample]
    if args.json:
        print_json({"split": args.which, "samples": [sample_data(view) for view in views]})
        return OK
    width = shutil.get_terminal_size((100, 24)).columns
    colours = wants_colours(sys.stdout)
    for number, view in enumerate(views):
        if number:
            print()
        lines = (
            table_page(view, data.tokenizer, width)
            if args.table
            else sample_page(view, width, colours)
        )
        write_lines(lines, sys.stdout, colours)
    return OK
