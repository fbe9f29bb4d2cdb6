"""Sizes that flags may ask for: those that a computer can hold and a person can wait for."""

import argparse
from typing import Any

from coredata.tools.output import count_of

MOST_SAMPLES = 1 << 40
"""The most samples of a run: their index arrays alone take tens of terabytes."""

MOST_SHUFFLED = 1 << 32
"""The most samples that are shuffled to answer one question: some minutes' work."""

_SMALL_EPOCH = 1 << 12
"""Samples of an epoch below which the work of an epoch hardly falls."""

_COUNTS = ("train_iters", "train_samples", "global_batch_size", "micro_batch_size", "eval_iters")


def check_possible(args: argparse.Namespace, *samples: int | None, asked: str = "") -> None:
    """Refuse sizes that no computer holds, by the flags that ask for them.

    Args:
        args: the flags; each count of steps or samples among them is checked by itself.
        samples: what follows from them; None for one epoch.
        asked: the flags that `samples` follow from, if they are others than those of the run.

    Raises:
        ValueError: the text names the flags and the number of samples.
    """
    given = {f"--{name.replace('_', '-')}": getattr(args, name) for name in _COUNTS}
    for flag, value in given.items():
        _check(f"{flag} {value}", value)
    if not asked and args.num_samples is not None:
        asked = f"--num-samples {' '.join(args.num_samples)}"
    asked = asked or " ".join(f"{flag} {n}" for flag, n in given.items() if n is not None)
    for count in samples:
        _check(asked, count)


def check_searchable(steps: Any, until: int | None) -> None:
    """Refuse to search more epochs of a cyclic order than one can wait for.

    Args:
        steps: the steps of a run (`TrainingSteps`).
        until: how many of them are searched; None for one epoch.

    Raises:
        ValueError: too many, or fewer than none; the text names a number that works.
    """
    if until is not None and until < 0:
        raise ValueError(f"--until-step {until} is negative; give the number of steps to look at")
    if until is None or not steps.sampler.cyclic:
        return
    active = steps.sampler.active_samples
    epochs = -(-steps.consumed_before(until) // active)
    most = max(MOST_SHUFFLED // max(active, _SMALL_EPOCH), 1)
    if epochs > most:
        raise ValueError(
            f"{until:,} steps are {count_of(epochs, 'epoch')} of {count_of(active, 'sample')}, "
            "each in an order of its own, which take too long to search; give "
            f"--until-step {steps.step_at(most * active)} or less"
        )


def _check(asked: str, count: int | None) -> None:
    if count is not None and count > MOST_SAMPLES:
        raise ValueError(
            f"{asked}: {count:,} are too many; a computer holds the index of at most "
            f"{MOST_SAMPLES:,} samples"
        )
