"""`coredata inspect`: what is in a token file, a blend, a cache, or a loader's state."""

import argparse
import sys
from typing import Any

HELP = "tell what is in a token file, a blend, a cache directory or a loader's state"

_EPILOG = """\
Give paths of files, or the data flags of a training run: then shares, epochs and repeats of every
source are told, and the memory of the index arrays. With tokenizer flags, special tokens of token
files are counted. Exit code: 0 done, 2 it could not be done.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags: paths, or those of training."""
    from coredata.tools.data_arguments import add_data_arguments

    parser.epilog = _EPILOG
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="prefix of a token file, directory with caches or token files, state as JSON",
    )
    parser.add_argument(
        "--scan-tokens",
        type=int,
        metavar="N",
        help="tokens of a file to look at for special ones, spread over it (default: 50 million)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    add_data_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Look and print.

    Raises:
        ValueError: flags that make no sense, damaged files.
        IndexError: a sample to be skipped that does not exist.
        FileNotFoundError: nothing at a path.
    """
    from coredata.tools.inspect_page import InspectPage
    from coredata.tools.output import OK, USAGE, print_json, progress, say

    if args.scan_tokens is not None and args.scan_tokens < 1:
        raise ValueError(f"--scan-tokens {args.scan_tokens}: need at least 1, such as 1000000")
    if args.paths and args.skip_samples is not None:
        raise ValueError("--skip-samples is of a run's samples: give its data flags, without paths")
    page = None if args.json else InspectPage(sys.stdout)
    if args.paths:
        with progress(lambda: "looking"):
            found = [one for path in args.paths for one in _inspect_path(path, args, page)]
    else:
        from coredata.tools.inspect_data import run_facts
        from coredata.tools.opened_data import open_data
        from coredata.tools.skip_samples import read_skip_list

        skip = read_skip_list(args.skip_samples)
        with progress(lambda: "opening datasets"):
            data = open_data(args)
            facts = run_facts(data, skip)
        for note in data.notes:
            say("inspect", note)
        if page is not None:
            page.run(facts)
        found = [{"kind": "run", **facts.as_data()}]
    if args.json:
        print_json({"found": found})
    unread = [one["reason"] for one in found if one["kind"] == "unread"]
    for text in unread:
        say("inspect", text)
    return USAGE if unread else OK


def _inspect_path(path: str, args: argparse.Namespace, page: Any) -> list[dict[str, Any]]:
    """What is at a path, printed if there is a page, and as JSON values."""
    from coredata.storage import exists, is_directory

    if path.endswith(".json") and exists(path):
        return _state(path, page)
    if is_directory(path):
        return _directory(path, args, page)
    from coredata.tools.verify_targets import find_targets

    return [_prefix(prefix, args, page) for prefix in find_targets([path]).pairs]


def _prefix(prefix: str, args: argparse.Namespace, page: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from coredata.tools.data_tokenizer import tokenizer_from_args
    from coredata.tools.inspect_prefix import SCANNED, prefix_facts

    named = args.tokenizer_type or args.tokenizer_model or args.vocab_file
    tokenizer = tokenizer_from_args(args) if named else None
    facts = prefix_facts(prefix, tokenizer, args.scan_tokens or SCANNED)
    if page is not None:
        page.prefix(facts)
    return {"kind": "prefix", **asdict(facts)}


def _directory(path: str, args: argparse.Namespace, page: Any) -> list[dict[str, Any]]:
    from coredata.tools.inspect_page import cache_facts
    from coredata.tools.verify_targets import find_targets

    targets = find_targets([path])
    found = [_prefix(prefix, args, page) for prefix in targets.pairs]
    for directory in dict.fromkeys(files.directory for files in targets.caches):
        here = [files for files in targets.caches if files.directory == directory]
        if page is not None:
            page.caches(directory, here)
        for files in here:
            try:
                facts = {"complete": True, **cache_facts(files)}
            except ValueError as error:
                facts = {"complete": False, "reason": str(error)}
            found.append({"kind": "cache", "class": files.class_name, "key": files.key, **facts})
    return [*found, *({"kind": "unread", "reason": text} for text in targets.unread)]


def _state(path: str, page: Any) -> list[dict[str, Any]]:
    """A state, or several by split."""
    from coredata.loading import read_state
    from coredata.tools.opened_data import read_states

    found = []
    for name, state in read_states(path).items():
        read_state(state, state["fingerprint"])
        if page is not None:
            page.state(f"{path} {name}".rstrip(), state)
        found.append({"kind": "state", "name": name, **state})
    return found
