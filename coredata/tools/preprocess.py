"""`coredata preprocess`: text to token files."""

import argparse
import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coredata.preprocess import PreprocessReport, SentenceSplitter
    from coredata.text import Tokenizer

HELP = "tokenise JSON lines or parquet files into .bin/.idx files"

_EPILOG = """\
Blank lines are passed over. A bad line (no JSON object, not UTF-8, key missing, no text) ends the
run and is named, unless --max-errors allows it. The output is the same whatever --workers is. An
interrupted run goes on from its finished shards when the same command is given again (an input of
the same size and time of last change counts as the same). One run at a time writes to a PREFIX.
Exit code: 0 done, 2 it could not be done (a bad line, a flag, a file), 130 interrupted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags, named as the reference's where it has them."""
    parser.epilog = _EPILOG
    data = parser.add_argument_group("input and output")
    data.add_argument(
        "--input",
        nargs="+",
        required=True,
        metavar="FILE",
        help="files, URLs or quoted patterns: JSON lines (also .gz, .zst) or .parquet",
    )
    data.add_argument(
        "--output-prefix",
        required=True,
        metavar="PREFIX",
        help="path or URL; writes PREFIX_KEY_document.bin and .idx (_sentence with "
        "--split-sentences)",
    )
    data.add_argument(
        "--json-keys",
        nargs="+",
        default=["text"],
        metavar="KEY",
        help="keys to take text from, each into files of its own (default: text)",
    )
    data.add_argument(
        "--append-eod", action="store_true", help="end documents with the end-of-document token"
    )
    data.add_argument(
        "--drop-empty",
        action="store_true",
        help="leave out documents without tokens, instead of writing them without sequences",
    )
    data.add_argument(
        "--write-checksums",
        action="store_true",
        help="also write the checksums of each pair, to .crc beside it, for readers of a URL to "
        "find flipped bytes with",
    )
    sentences = parser.add_argument_group("sentences")
    sentences.add_argument(
        "--split-sentences", action="store_true", help="make each sentence a sequence"
    )
    sentences.add_argument(
        "--keep-newlines",
        action="store_true",
        help="keep the white space between sentences (only with --split-sentences)",
    )
    sentences.add_argument(
        "--lang",
        default="english",
        help="language, by code or English name, for splitting (default: english)",
    )
    _add_tokenizer_arguments(parser)
    _add_running_arguments(parser)


def _add_tokenizer_arguments(parser: argparse.ArgumentParser) -> None:
    tokenizer = parser.add_argument_group("tokenizer")
    tokenizer.add_argument(
        "--tokenizer-type",
        metavar="TYPE",
        help="HuggingFaceTokenizer, GPT2BPETokenizer, ByteLevelTokenizer, ByteTokenizer, "
        "NullTokenizer; guessed from the files if left out",
    )
    tokenizer.add_argument(
        "--tokenizer-model", metavar="PATH", help="a tokenizer.json, or a directory with one"
    )
    tokenizer.add_argument("--vocab-file", metavar="PATH", help="GPT-2's vocab.json")
    tokenizer.add_argument("--merge-file", metavar="PATH", help="GPT-2's merges.txt")
    tokenizer.add_argument(
        "--vocab-size", type=int, metavar="N", help="for tokenizers without files"
    )
    tokenizer.add_argument(
        "--eod",
        metavar="TOKEN",
        help="name of the end-of-document token, if not the one found in the tokenizer's files",
    )


def _add_running_arguments(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running")
    running.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes (default: 1)"
    )
    running.add_argument(
        "--max-errors",
        type=int,
        default=0,
        metavar="N",
        help="skip up to N bad lines and list them in the report (default: 0)",
    )
    running.add_argument(
        "--error-report",
        metavar="PATH",
        help="where skipped lines are listed (default: PREFIX_errors.jsonl)",
    )
    running.add_argument(
        "--log-interval",
        type=int,
        metavar="N",
        help="print progress as lines, every N documents (default: only on a terminal)",
    )
    running.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    running.add_argument(
        "--shard-size",
        type=int,
        metavar="MIB",
        help="mebibytes of input in one task (default: chosen from input and workers)",
    )
    running.add_argument(
        "--partitions", type=int, metavar="N", help="accepted and not needed: input is cut anyway"
    )
    running.add_argument(
        "--keep-sequential-samples",
        action="store_true",
        help="accepted and not needed: the order is always that of the input",
    )


def run(args: argparse.Namespace) -> int:
    """Do what the flags say; print the report on standard output."""
    from coredata.preprocess import SentenceSplitter
    from coredata.text import load_tokenizer
    from coredata.tools.output import print_json
    from coredata.tools.output_prefix import check_not_empty

    check_not_empty(args.output_prefix)
    if args.shard_size is not None and args.shard_size < 1:
        raise ValueError(
            f"--shard-size {args.shard_size}: need at least 1 mebibyte of input, such as 64"
        )

    if args.partitions is not None:
        _say("--partitions is not needed: the input is cut into shards by itself")
    if args.keep_sequential_samples:
        _say("--keep-sequential-samples is not needed: documents stay in input order anyway")
    if args.keep_newlines and not args.split_sentences:
        _say("--keep-newlines does nothing without --split-sentences")
    splitter = SentenceSplitter(args.lang, args.keep_newlines) if args.split_sentences else None
    tokenizer = load_tokenizer(
        args.tokenizer_type,
        args.tokenizer_model,
        args.vocab_file,
        args.merge_file,
        eod=args.eod,
        vocab_size=args.vocab_size,
    )
    check_directory(args.output_prefix)
    with _telling_what_is_left(f"{args.output_prefix}.parts"):
        report = _preprocess(args, tokenizer, splitter)
    if args.json:
        print_json(dataclasses.asdict(report))
    else:
        print(report.summary())
    return 0


@contextlib.contextmanager
def _telling_what_is_left(parts: str) -> Iterator[None]:
    """On a failure, name the directory of finished work; delete it if nothing is finished."""
    done = False
    try:
        yield
        done = True
    finally:
        if done or not os.path.isdir(parts):
            pass
        elif not any(re.fullmatch(r"[0-9]+\.json", name) for name in os.listdir(parts)):
            shutil.rmtree(parts)
        else:
            _say(
                f"{parts} keeps what is finished: the same command goes on from there. Remove it "
                "if you give up"
            )


def check_directory(prefix: str) -> None:
    """Refuse output into a local directory that does not exist, which is a likely slip.

    Raises:
        FileNotFoundError: the text names the directory.
    """
    from coredata.storage import local_path

    local = local_path(prefix)
    directory = "" if local is None else os.path.dirname(local)
    if directory and not os.path.isdir(directory):
        raise FileNotFoundError(
            f"--output-prefix {prefix}: there is no directory {directory}; create it first: "
            f"mkdir -p {shlex.quote(directory)}"
        )


def _preprocess(
    args: argparse.Namespace, tokenizer: "Tokenizer", splitter: "SentenceSplitter | None"
) -> "PreprocessReport":
    from coredata.preprocess import preprocess

    return preprocess(
        args.input,
        args.output_prefix,
        tokenizer,
        json_keys=args.json_keys,
        append_eod=args.append_eod,
        drop_empty=args.drop_empty,
        splitter=splitter,
        workers=args.workers,
        max_errors=args.max_errors,
        error_report=args.error_report,
        shard_bytes=None if args.shard_size is None else args.shard_size << 20,
        progress=sys.stderr,
        log_interval=args.log_interval,
        checksums=args.write_checksums,
    )


def _say(text: str) -> None:
    print(f"coredata preprocess: {text}", file=sys.stderr)
