"""From a configuration and three sizes to the train, valid and test datasets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from coredata.datasets.blended import BlendedDataset
from coredata.datasets.builder_parts import build_parts
from coredata.datasets.builder_plan import Part, SplitPlan, plan_splits
from coredata.datasets.config import BlendedMegatronDatasetConfig
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.mid_level import MidLevelDatasetClass
from coredata.datasets.ranks import CacheScope, Ranks, SingleProcess, build_in_turn
from coredata.indices import Split


class BlendedMegatronDatasetBuilder:
    """Builds the datasets that a configuration names.

    The constructor plans and validates; `build` opens files, and is where processes agree.

    Args:
        cls: the class of the datasets, such as `GPTDataset`, or `MockGPTDataset` when the
            configuration names no files. Any class of the shape `MidLevelDatasetClass`.
        sizes: samples asked of train, valid and test; None for what one epoch gives.
        is_built_on_rank: called by `build`; where it gives False, nothing is built. Accepted so
            that code moves over; `ranks.builds` says the same.
        config: blends, splits, seeds, caches.
        ranks: the processes that build together; this one alone by default. All must call
            `build`.
        cache_scope: "shared" if all ranks see one `path_to_cache`, "node" if each machine has its
            own.

    Raises:
        ValueError: sizes that are not three or are negative, a blend with weights but no size, or
            a class that reads files without files in the configuration.
        TypeError: no configuration.
    """

    def __init__(
        self,
        cls: MidLevelDatasetClass,
        sizes: Sequence[int | None],
        is_built_on_rank: Callable[[], bool] | None = None,
        config: BlendedMegatronDatasetConfig | None = None,
        *,
        ranks: Ranks | None = None,
        cache_scope: Literal["shared", "node"] = "shared",
    ) -> None:
        if config is None:
            raise TypeError("config: got None; give a configuration, such as a GPTDatasetConfig")
        if config.mock and cls is GPTDataset:
            raise ValueError(
                "cls: GPTDataset reads files, but the configuration names none. Give it blend and"
                " split, or blend_per_split; or build MockGPTDataset for made-up data"
            )
        self.cls = cls
        self.sizes = list(sizes)
        self.config = config
        self.plans = plan_splits(config, sizes)
        self._is_built_on_rank = is_built_on_rank
        self._ranks: Ranks = SingleProcess() if ranks is None else ranks
        self._cache_scope = cache_scope

    def build(self) -> list[Any]:
        """The train, valid and test datasets; None where there is none, or on a rank that does
        not build.

        For each split, with n samples asked:

        - one file without weights (or any single file of `blend_per_split`): a dataset with at
          least n samples, or with n None, one epoch;
        - several files with weights: a `BlendedDataset` of at least n samples, by these weights;
        - several files without weights: a `BlendedDataset` of one epoch of each at most, by their
          lengths, of n samples if there are so many, or with n None, of all;
        - `multiple_validation_sets`: valid is a list, a dataset with n samples for each file;
        - `full_validation`: for valid, n is taken to be None.

        Raises:
            EmptySplitError: samples asked of a split that covers no part of its file.
            IndexError: a blend draws a dataset more often than it has samples.
            RankFailedError: another rank failed; a rank that fails raises its own exception.
            RankLostError: another rank ended, or did not answer in time.
            Exception: whatever the dataset class raises.
        """
        ranks = self._ranks
        if self._is_built_on_rank is not None:
            ranks = _Choosing(ranks, bool(self._is_built_on_rank()))
        datasets = build_in_turn(ranks, self._order(), self._build_here)
        return [None] * len(Split) if datasets is None else datasets

    def _order(self) -> CacheScope:
        if self.config.path_to_cache is None or self.config.fast_cache_load:
            return "none"
        return self._cache_scope

    def _build_here(self) -> list[Any]:
        parts = [part for plan in self.plans if plan is not None for part in plan.parts]
        built = build_parts(self.cls, parts, self.config)
        return [None if plan is None else self._assemble(plan, built) for plan in self.plans]

    def _assemble(self, plan: SplitPlan, built: Mapping[Part, Any]) -> Any:
        datasets = [built[part] for part in plan.parts]
        if plan.form == "single":
            return datasets[0]
        if plan.form == "list":
            return datasets
        if plan.weights is not None:
            return BlendedDataset(datasets, plan.weights, plan.size, self.config)
        lengths = [len(dataset) for dataset in datasets]
        if plan.size and not any(lengths):
            raise ValueError(
                f"{plan.size} samples are asked of the {plan.split.name} split, but none of its"
                f" {len(datasets)} files has enough tokens for one. Give this split a larger"
                " share or more data, shorten sequence_length, or ask for 0 samples"
            )
        size = None if plan.size is None else min(plan.size, sum(lengths))
        return BlendedDataset(datasets, lengths, size, self.config)


class _Choosing:
    """Ranks of which this one builds or not by another's word."""

    def __init__(self, ranks: Ranks, builds: bool) -> None:
        self.rank = ranks.rank
        self.world_size = ranks.world_size
        self.node_rank = ranks.node_rank
        self.builds = ranks.builds and builds
        self.all_gather = ranks.all_gather
