"""From command-line flags, named as in Megatron-LM, to datasets: for trainers and for the tools.

parser = argparse.ArgumentParser()
add_data_arguments(parser)
args = parser.parse_args()
train, valid, test = datasets_from_args(args)
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

from coredata.tools import data_flags
from coredata.tools.packing_flags import add_packing_flags

if TYPE_CHECKING:
    from coredata.datasets import (
        BlendedMegatronDatasetBuilder,
        BlendedMegatronDatasetConfig,
        MidLevelDatasetClass,
    )
    from coredata.datasets.ranks import Ranks
    from coredata.text import Tokenizer

DEFAULT_SPLIT = "969, 30, 1"
"""What the reference takes for --split with --data-path."""


def add_data_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the flags about data, named and meant as in Megatron-LM; gives `parser` back.

    Flags cannot be abbreviated, as in the reference. Differences: no dense attention mask is made
    unless `--create-attention-mask-in-dataloader` is given; kinds of samples for which the
    reference has scripts of their own are chosen by `--dataset`.

    Raises:
        argparse.ArgumentError: `parser` has one of the flags already.
    """
    parser.allow_abbrev = False
    data_flags.add_blend_flags(parser)
    data_flags.add_sample_flags(parser)
    data_flags.add_tokenizer_flags(parser)
    data_flags.add_cache_flags(parser)
    data_flags.add_loading_flags(parser)
    data_flags.add_conversation_flags(parser)
    add_packing_flags(parser)
    data_flags.add_infilling_flags(parser)
    data_flags.add_masked_flags(parser)
    data_flags.add_parallel_flags(parser)
    return parser


@dataclass(frozen=True)
class DataPlan:
    """What flags ask for, checked, before any token file is opened.

    Attributes:
        dataset_class: of every dataset.
        config: its configuration.
        sizes: samples of train, valid and test; None for one epoch.
        prefixes: every file once.
        scheduler: what packs samples of varying length; None if nothing does.
        notes: what was decided without being asked for, a sentence each.
    """

    dataset_class: "MidLevelDatasetClass"
    config: "BlendedMegatronDatasetConfig"
    sizes: tuple[int | None, ...]
    prefixes: tuple[str, ...]
    scheduler: str | None
    notes: tuple[str, ...]

    def builder(
        self,
        *,
        ranks: "Ranks | None" = None,
        cache_scope: Literal["shared", "node"] = "shared",
    ) -> "BlendedMegatronDatasetBuilder":
        """What builds the datasets.

        Raises:
            ValueError: weights without a number of samples; the text names flags.
        """
        from coredata.datasets import BlendedMegatronDatasetBuilder
        from coredata.tools.data_words import in_flags

        try:
            return BlendedMegatronDatasetBuilder(
                self.dataset_class,
                self.sizes,
                config=self.config,
                ranks=ranks,
                cache_scope=cache_scope,
            )
        except ValueError as error:
            raise ValueError(in_flags(str(error))) from error

    def changed(self, **fields: Any) -> "DataPlan":
        """The same with other fields of the configuration."""
        return replace(self, config=replace(self.config, **fields))


def data_plan(
    args: argparse.Namespace,
    *,
    sizes: Sequence[int | None] | None = None,
    tokenizer: "Tokenizer | None" = None,
    check_files: bool = True,
) -> DataPlan:
    """The plan that flags describe.

    Args:
        args: what a parser with `add_data_arguments` gave.
        sizes: samples of train, valid and test; by default what the flags imply
            (`coredata.tools.data_sizes.sizes_from_args`).
        tokenizer: instead of the one that the flags name.
        check_files: look for every file, and name what is near if one is missing.

    Raises:
        ValueError: flags that exclude each other or are out of range; the text names them.
        FileNotFoundError: a file is missing; the text names what is near.
    """
    from coredata.tools.data_blend import blends_from_args, check_pairs, check_rows, prefixes_of
    from coredata.tools.data_checks import check_flags
    from coredata.tools.data_config import config_fields, dataset_class, with_flag
    from coredata.tools.data_sizes import sizes_from_args
    from coredata.tools.data_tokenizer import tokenizer_from_args

    check_flags(args)
    blend, per_split = blends_from_args(args)
    prefixes = prefixes_of(blend, per_split)
    of_rows = args.sft or args.use_varlen_dataset
    if check_files and not args.dataloader_fast_cache_load:
        (check_rows if of_rows else check_pairs)(prefixes)
    counts = tuple(sizes_from_args(args).samples if sizes is None else sizes)
    check_counts(counts)
    notes = []
    split = args.split
    if split is None and blend is not None:
        split = DEFAULT_SPLIT
        notes.append(f"--split is not given: {DEFAULT_SPLIT}, as in the reference")
    scheduler = packing_scheduler(args)
    if scheduler != args.sequence_packing_scheduler:
        notes.append(f"--sequence-packing-scheduler is not given: {scheduler}")
    chosen, make = dataset_class(args)
    fields = config_fields(args)
    fields["tokenizer"] = tokenizer_from_args(args) if tokenizer is None else tokenizer
    if not args.mock_data:
        fields |= {"blend": blend, "blend_per_split": per_split, "split": split}
    try:
        config = make(**fields)
    except (ValueError, TypeError) as error:
        raise with_flag(error) from error
    return DataPlan(chosen, config, counts, tuple(prefixes), scheduler, tuple(notes))


def datasets_from_args(
    args: argparse.Namespace,
    *,
    sizes: Sequence[int | None] | None = None,
    tokenizer: "Tokenizer | None" = None,
    ranks: "Ranks | None" = None,
    cache_scope: Literal["shared", "node"] = "shared",
) -> list[Any]:
    """The train, valid and test datasets that flags describe; None where there is none.

    With `--skip-samples` the training set is without these (`WithoutSamples`), and a run over it
    that much shorter: the order of the others does not change.

    Args:
        args: what a parser with `add_data_arguments` gave.
        sizes: samples of each; by default what the flags imply: batch size, steps, evaluations.
        tokenizer: instead of the one that the flags name.
        ranks: the processes that build together; all of them must call this.
        cache_scope: "shared" if all see one cache, "node" if each machine has its own.

    Raises:
        ValueError: flags that exclude each other or are out of range; the text names them.
        FileNotFoundError: a file is missing; the text names what is near.
        IndexError: a sample to be skipped that does not exist.
        Exception: whatever building raises; see `BlendedMegatronDatasetBuilder.build`.
    """
    from coredata.tools.skip_samples import read_skip_list, without

    skip = read_skip_list(args.skip_samples)
    plan = data_plan(args, sizes=sizes, tokenizer=tokenizer)
    train, *others = plan.builder(ranks=ranks, cache_scope=cache_scope).build()
    return [train if train is None else without(train, skip), *others]


def check_counts(counts: Sequence[Any]) -> None:
    """Refuse numbers of samples that are none.

    Raises:
        ValueError: a fraction, a negative number, or no number; None stands for one epoch.
    """
    for count in counts:
        if count is not None and (not isinstance(count, Integral) or int(count) < 0):
            raise ValueError(f"sizes: {count!r} samples; need whole numbers of at least 0, or None")


def packing_scheduler(args: argparse.Namespace) -> str | None:
    """What packs samples of varying length: the one given, or as the reference chooses."""
    if args.sequence_packing_scheduler is not None:
        return str(args.sequence_packing_scheduler)
    if not args.use_varlen_dataset or args.varlen_sbhd_validation:
        return None
    dynamic = args.dynamic_context_parallel or args.hybrid_context_parallel
    return "default_dynamic_cp" if dynamic else "dp_balanced"
