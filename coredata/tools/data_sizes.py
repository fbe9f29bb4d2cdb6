"""How many samples a run takes of train, valid and test: told, or computed as trainers do."""

import argparse
import os
from dataclasses import dataclass

from coredata.sampling import BatchSizeRampUp
from coredata.tools.output import count_of


@dataclass(frozen=True)
class RunSizes:
    """What a run reads.

    Attributes:
        train: samples; None for one epoch.
        valid: samples of all evaluations; None for one epoch.
        test: samples; None for one epoch.
        train_iters: steps that `train` is taken in; None if that is not known.
        global_batch_size: samples of a step, at its full size; None if not known.
        data_parallel_size: ranks that read different samples.
        source: what the sizes follow from.
    """

    train: int | None
    valid: int | None
    test: int | None
    train_iters: int | None
    global_batch_size: int | None
    data_parallel_size: int
    source: str

    @property
    def samples(self) -> list[int | None]:
        """As the builder takes them."""
        return [self.train, self.valid, self.test]


def data_parallel_size(args: argparse.Namespace, world_size: int | None = None) -> int:
    """Ranks that read different samples: told, or the ranks through those that share samples.

    Args:
        args: the flags.
        world_size: all ranks; by default the environment's WORLD_SIZE, or as many as one
            data-parallel rank needs.

    Raises:
        ValueError: sizes below 1, or ranks that are no multiple of those that share samples.
    """
    for name in ("tensor_model", "pipeline_model", "context"):
        _positive(
            f"--{name.replace('_', '-')}-parallel-size", getattr(args, f"{name}_parallel_size")
        )
    shared = (
        args.tensor_model_parallel_size
        * args.pipeline_model_parallel_size
        * args.context_parallel_size
    )
    if args.data_parallel_size is not None:
        _positive("--data-parallel-size", args.data_parallel_size)
        return args.data_parallel_size
    if world_size is None:
        world_size = _environment()
    if world_size is None:
        return 1
    if world_size % shared:
        raise ValueError(
            f"{world_size} ranks are no multiple of tensor × pipeline × context = {shared}; "
            f"{-(-world_size // shared) * shared} would be"
        )
    return world_size // shared


def sizes_from_args(args: argparse.Namespace, world_size: int | None = None) -> RunSizes:
    """Samples of train, valid and test, by Megatron-LM's arithmetic.

    train is `--train-samples`, or the samples of `--train-iters` steps; valid is what
    1 + train_iters // eval_interval evaluations of `--eval-iters` steps read; test is one
    evaluation. With `--full-validation`, valid is one epoch; with `--skip-train`, one evaluation.
    Evaluations read at the full batch size. A batch size that ramps up may be combined with
    `--train-iters` (the reference refuses that): train is exactly what these steps consume.

    `--num-samples` says all three instead.

    Raises:
        ValueError: neither steps nor samples, no batch size, a number out of range, a ramp-up that
            makes no sense.
    """
    ranks = data_parallel_size(args, world_size)
    if args.num_samples is not None:
        given = [_count(text) for text in args.num_samples]
        train, valid, test = given
        return RunSizes(train, valid, test, None, args.global_batch_size, ranks, "--num-samples")
    batch = _batch_size(args, ranks)
    ramp = _ramp_up(args, batch)
    if ramp is not None and args.micro_batch_size is not None:
        ramp.check_divisible(args.micro_batch_size, ranks)
    train, steps, source = _train(args, batch, ramp)
    _positive("--eval-interval", args.eval_interval)
    if args.eval_iters < 0:
        raise ValueError(f"--eval-iters {args.eval_iters} is negative; give 0 for no evaluation")
    evaluations = 1 if args.skip_train else steps // args.eval_interval + 1
    valid = None if args.full_validation else evaluations * args.eval_iters * batch
    return RunSizes(train, valid, args.eval_iters * batch, steps, batch, ranks, source)


def _train(
    args: argparse.Namespace, batch: int, ramp: BatchSizeRampUp | None
) -> tuple[int, int, str]:
    """Samples, steps, and what they follow from."""
    if args.train_samples is not None:
        _positive("--train-samples", args.train_samples)
        steps = args.train_samples // batch if ramp is None else _steps(args.train_samples, ramp)
        return args.train_samples, steps, "--train-samples"
    if args.train_iters is None:
        if args.skip_train:
            return 0, 0, "--skip-train"
        raise ValueError(
            "how many samples? Give --train-iters N or --train-samples N as for training, or "
            "--num-samples TRAIN VALID TEST"
        )
    if args.train_iters < 0:
        raise ValueError(f"--train-iters {args.train_iters} is negative")
    if ramp is None:
        text = f"{count_of(args.train_iters, 'step')} of {count_of(batch, 'sample')}"
        return args.train_iters * batch, args.train_iters, text
    samples = ramp.consumed_after(args.train_iters)
    text = f"{count_of(args.train_iters, 'step')}, ramped up to {count_of(batch, 'sample')}"
    return samples, args.train_iters, text


def _steps(samples: int, ramp: BatchSizeRampUp) -> int:
    """Steps of so many samples, as the reference counts them: the ramp's last step may overrun."""
    steps = consumed = 0
    while consumed <= ramp.ramp_up_samples and consumed <= samples:
        consumed += ramp.batch_size(consumed)
        steps += 1
    return steps + max(samples - consumed, 0) // ramp.global_batch_size


def _batch_size(args: argparse.Namespace, ranks: int) -> int:
    if args.micro_batch_size is not None:
        _positive("--micro-batch-size", args.micro_batch_size)
    if args.global_batch_size is None:
        if args.micro_batch_size is None:
            raise ValueError(
                "--global-batch-size is missing: the samples of a step over all ranks, such as 512"
            )
        return args.micro_batch_size * ranks
    _positive("--global-batch-size", args.global_batch_size)
    block = (args.micro_batch_size or 1) * ranks
    if args.micro_batch_size is not None and args.global_batch_size % block:
        raise ValueError(
            f"--global-batch-size {args.global_batch_size} is no multiple of --micro-batch-size "
            f"{args.micro_batch_size} × {ranks} data-parallel ranks = {block}; "
            f"{-(-args.global_batch_size // block) * block} would be"
        )
    return args.global_batch_size


def _ramp_up(args: argparse.Namespace, batch: int) -> BatchSizeRampUp | None:
    given = args.rampup_batch_size
    if given is None:
        return None
    try:
        numbers = [int(number) for number in given]
    except ValueError:
        numbers = []
    if len(numbers) != 3:
        raise ValueError(
            f"--rampup-batch-size {' '.join(given)}: need three whole numbers, first size, "
            "increment, and samples over which it grows, such as 32 32 100000"
        )
    try:
        return BatchSizeRampUp(numbers[0], numbers[1], numbers[2], batch)
    except ValueError as error:
        raise ValueError(f"--rampup-batch-size {' '.join(given)}: {error}") from error


def _count(text: str) -> int | None:
    """A number of samples; None for one epoch."""
    if text == "epoch":
        return None
    if not text.isdigit():
        raise ValueError(
            f"--num-samples: got {text!r}; need three numbers, of train, valid and test, such as "
            '1000000 10000 0; "epoch" for what one epoch gives'
        )
    return int(text)


def _environment() -> int | None:
    text = os.environ.get("WORLD_SIZE")
    if text is None:
        return None
    if not text.isdigit() or not int(text):
        raise ValueError(f"WORLD_SIZE is {text!r} in the environment; need a number of ranks")
    return int(text)


def _positive(flag: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{flag} {value}: need at least 1")
