"""Flags that exclude or need each other, told by their own names."""

import argparse
from collections.abc import Sequence

_WAYS = {
    "--data-path": ("data_path",),
    "--data-args-path": ("data_args_path",),
    "--train-data-path, --valid-data-path or --test-data-path": (
        "train_data_path",
        "valid_data_path",
        "test_data_path",
    ),
    "--per-split-data-args-path": ("per_split_data_args_path",),
    "--mock-data": ("mock_data",),
}
"""The ways to name data: flags, and the attributes that tell whether one is given."""


def check_flags(args: argparse.Namespace) -> None:
    """Refuse flags that exclude each other.

    Raises:
        ValueError: the text names both flags, and what to leave out.
    """
    _check_ways(args)
    _check_kinds(args)
    _check_varlen(args)
    _check_cache(args)
    _check_sizes(args)


def _given(args: argparse.Namespace, names: Sequence[str]) -> bool:
    return any(getattr(args, name) not in (None, False) for name in names)


def check_one_way(args: argparse.Namespace, *, mock: bool = False) -> str:
    """Refuse no way to name files, or two; gives the flag of the one that is used.

    Raises:
        ValueError: the text names the flags.
    """
    known = {flag: names for flag, names in _WAYS.items() if mock or flag != "--mock-data"}
    ways = [flag for flag, names in known.items() if _given(args, names)]
    if not ways:
        first, *more, last = known
        others = f"{', '.join(more)} or {last}"
        raise ValueError(f"no data are named: give {first} PREFIX, or instead of it {others}")
    if len(ways) > 1:
        raise ValueError(f"{ways[0]} and {ways[1]} exclude each other; leave one out")
    return ways[0]


def _check_ways(args: argparse.Namespace) -> None:
    way = check_one_way(args, mock=True)
    if args.split is not None and way not in ("--data-path", "--data-args-path", "--mock-data"):
        raise ValueError(
            f"--split is given with {way}, whose files are used whole; leave --split out, or "
            "name the files with --data-path"
        )


def _check_kinds(args: argparse.Namespace) -> None:
    kinds = [
        flag
        for flag, on in {
            "--sft": args.sft,
            "--use-varlen-dataset": args.use_varlen_dataset,
            "--fim-data": args.fim_data,
            f"--dataset {args.dataset}": args.dataset != "gpt",
        }.items()
        if on
    ]
    if len(kinds) > 1:
        raise ValueError(
            f"{kinds[1]} and {kinds[0]} exclude each other: each is another kind of sample. "
            "Leave one out"
        )
    if args.mock_data and args.dataset != "gpt":
        raise ValueError(
            f"--mock-data cannot make up samples for --dataset {args.dataset}; name sentences with "
            "--data-path"
        )
    if args.mock_data and args.fim_data:
        raise ValueError(
            "--mock-data makes up numbers, and --fim-data permutes text; leave one out"
        )


def _check_varlen(args: argparse.Namespace) -> None:
    for flag, name, needs, on in (
        ("--varlen-sbhd-validation", "varlen_sbhd_validation", "--use-varlen-dataset", "varlen"),
        ("--varlen-mock-dataset-config-json", "varlen_mock_dataset_config_json", "", "varlen"),
        ("--sft-mock-dataset-config-json", "sft_mock_dataset_config_json", "", "sft"),
    ):
        kind = args.use_varlen_dataset if on == "varlen" else args.sft
        needed = needs or ("--use-varlen-dataset" if on == "varlen" else "--sft")
        if _given(args, [name]) and not kind:
            raise ValueError(f"{flag} means nothing without {needed}; add it, or leave {flag} out")
        if name.endswith("json") and _given(args, [name]) and not args.mock_data:
            raise ValueError(f"{flag} is for made-up data; add --mock-data, or leave {flag} out")
    scheduler = args.sequence_packing_scheduler
    if args.varlen_sbhd_validation:
        if args.mock_data:
            raise ValueError(
                "--varlen-sbhd-validation and --mock-data exclude each other: it holds real data, "
                "padded, to real data, packed. Name data with --data-path"
            )
        if scheduler is not None:
            raise ValueError(
                f"--varlen-sbhd-validation and --sequence-packing-scheduler {scheduler} exclude "
                "each other: padded samples are not packed. Leave one out"
            )
        if args.dynamic_context_parallel or args.hybrid_context_parallel:
            raise ValueError(
                "--varlen-sbhd-validation and --dynamic-context-parallel exclude each other: "
                "padded samples are not packed. Leave one out"
            )
    if scheduler is not None and not (args.use_varlen_dataset or args.sft):
        raise ValueError(
            f"--sequence-packing-scheduler {scheduler} packs samples of --use-varlen-dataset or "
            "--sft; add one of them, or leave it out"
        )


def _check_cache(args: argparse.Namespace) -> None:
    for flag in ("--dataloader-fast-cache-load", "--dataloader-defer-npy-index-mmap"):
        name = flag.removeprefix("--").replace("-", "_")
        if getattr(args, name) and args.data_cache_path is None:
            raise ValueError(
                f"{flag} needs a finished cache: give --data-cache-path DIR, which `coredata "
                "prepare-cache` fills, or leave it out"
            )


def _check_sizes(args: argparse.Namespace) -> None:
    if args.seq_length is None and args.encoder_seq_length is None:
        raise ValueError("--seq-length is missing: the tokens of a sample, such as 4096")
    if args.seq_length is not None and args.encoder_seq_length is not None:
        raise ValueError("--seq-length and --encoder-seq-length are one; leave one out")
    if args.train_iters is not None and args.train_samples is not None:
        raise ValueError(
            "--train-iters and --train-samples exclude each other; leave one out, and the other "
            "follows from the batch size"
        )
    if args.dataset == "t5" and args.decoder_seq_length is None:
        raise ValueError("--dataset t5 needs --decoder-seq-length, the tokens of its decoder")
