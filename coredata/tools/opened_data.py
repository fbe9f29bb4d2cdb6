"""The datasets that data flags describe, for commands that look at them."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coredata.sampling import (
    BatchSampler,
    BatchSizeRampUp,
    GlobalBatchSampler,
    MegatronPretrainingRandomSampler,
    TrainingSteps,
)
from coredata.storage import exists, read_bytes
from coredata.tools.data_arguments import data_plan
from coredata.tools.data_limits import check_possible
from coredata.tools.data_sizes import data_parallel_size, sizes_from_args
from coredata.tools.split_flags import SPLITS


@dataclass(frozen=True)
class OpenedData:
    """What flags describe, built.

    Attributes:
        datasets: train, valid and test; None where there is none, a list for several sets.
        tokenizer: that of the configuration.
        notes: what was decided without being asked for.
    """

    datasets: tuple[Any, ...]
    tokenizer: Any
    notes: tuple[str, ...]

    def split(self, name: str, number: int = 0) -> Any:
        """The dataset of a split; of several validation sets, one of them.

        Raises:
            ValueError: there is none.
        """
        dataset = self.datasets[SPLITS.index(name)]
        if isinstance(dataset, list):
            if not 0 <= number < len(dataset):
                raise ValueError(
                    f"--set {number}: there are {len(dataset)} sets of the {name} split, numbered "
                    f"0 to {len(dataset) - 1}"
                )
            return dataset[number]
        if number and dataset is not None:
            raise ValueError(
                f"--set {number}: there is one set of the {name} split, number 0; leave --set out"
            )
        if dataset is None:
            there = [known for known in SPLITS if self.datasets[SPLITS.index(known)] is not None]
            raise ValueError(
                f"--which {name}: the flags give no {name} split, only {', '.join(there)}; give it "
                "a share in --split, or its files"
            )
        return dataset


def open_data(args: argparse.Namespace) -> OpenedData:
    """Build what the flags describe, as training would.

    Without steps or samples, each split is one epoch of its files.

    Raises:
        ValueError: flags that exclude each other or are out of range; a weighted blend without
            a number of samples.
        FileNotFoundError: a file is missing.
    """
    notes: tuple[str, ...] = ()
    if args.num_samples is None and args.train_iters is None and args.train_samples is None:
        plan = data_plan(args, sizes=[None] * len(SPLITS))
        notes = (
            "neither --train-iters nor --train-samples is given: one epoch of every file, whose "
            "order is not that of a longer run",
        )
        try:
            builder = plan.builder()
        except ValueError as error:
            raise ValueError(
                f"{error}. Give --train-iters or --train-samples, as for training, or --num-samples"
            ) from error
    else:
        sizes = sizes_from_args(args)
        check_possible(args, *sizes.samples)
        plan = data_plan(args, sizes=sizes.samples)
        builder = plan.builder()
    datasets = tuple(builder.build())
    return OpenedData(datasets, plan.config.tokenizer, (*plan.notes, *notes))


def training_steps(args: argparse.Namespace, samples: int) -> TrainingSteps:
    """The steps that a run with these flags takes over so many samples.

    Raises:
        ValueError: no batch size, or sizes that do not fit.
    """
    check_possible(args)
    ranks = data_parallel_size(args)
    batch = args.global_batch_size
    if batch is None:
        if args.micro_batch_size is None:
            raise ValueError(
                "--global-batch-size is missing: the samples of a step over all ranks, such as 512"
            )
        batch = args.micro_batch_size * ranks
    size: int | BatchSizeRampUp = batch
    if args.rampup_batch_size:
        first, increment, grown_over = map(int, args.rampup_batch_size)
        size = BatchSizeRampUp(first, increment, grown_over, batch)
    sampler: BatchSampler = GlobalBatchSampler(samples, 0, size)
    if args.dataloader_type == "cyclic":
        micro = args.micro_batch_size
        if micro is None:
            raise ValueError(
                "--micro-batch-size is missing: a cyclic order depends on it, such as 4"
            )
        sampler = MegatronPretrainingRandomSampler(samples, 0, micro, 0, ranks, args.data_sharding)
    elif args.dataloader_type not in (None, "single"):
        raise ValueError(
            f"--dataloader-type {args.dataloader_type}: the order of samples is not known here; "
            "steps are those of single or cyclic"
        )
    return TrainingSteps(sampler, size)


def read_states(path: str) -> dict[str, Mapping[str, Any]]:
    """The loaders' states in a JSON file: one, called "", or several by name.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no JSON, or no states in it.
    """
    if not exists(path):
        raise FileNotFoundError(
            f"{path} does not exist; the state of a loader is what state_dict() gave, saved as JSON"
        )
    try:
        found: Any = json.loads(read_bytes(path))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}; need what state_dict() gave") from error
    states = {"": found} if isinstance(found, Mapping) and "fingerprint" in found else found
    if isinstance(states, Mapping):
        states = {
            str(name): state
            for name, state in states.items()
            if isinstance(state, Mapping) and "fingerprint" in state
        }
    if not states or not isinstance(states, Mapping):
        keys = sorted(map(str, found)) if isinstance(found, Mapping) else type(found).__name__
        raise ValueError(
            f"{path} holds no loader state: {keys}; need a JSON file of what state_dict() gave, "
            "with version, consumed_samples and fingerprint"
        )
    return dict(states)


def read_state_file(path: str, split: str) -> Mapping[str, Any]:
    """The state of the loader of a split in a JSON file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no JSON, or no such state in it.
    """
    states = read_states(path)
    if "" in states:
        return states[""]
    if split not in states:
        raise ValueError(
            f"{path} holds the states of {', '.join(states)}, but none of {split}; choose with "
            "--which"
        )
    return states[split]
