"""How many epochs a run needs, how many samples they give, and how the last one is shuffled.

Arithmetic on exact integers: nothing here has the size of the data.
"""

from dataclasses import dataclass

SEPARATE_FINAL_EPOCH_THRESHOLD = 0.80
"""Share of an epoch's samples below which the last epoch is shuffled by itself."""


@dataclass(frozen=True)
class FinalEpoch:
    """How the last epoch is shuffled: together with those before it, or by itself."""

    separate: bool
    samples_before: int
    """Samples that begin in the epochs before the last."""


@dataclass(frozen=True)
class EpochPlan:
    """The counts that fix the three indices of a split, before any of them is built."""

    tokens_per_epoch: int
    epochs: int
    samples: int
    """Samples the indices hold: those asked for, and what is left of the last epoch."""
    final_epoch: FinalEpoch


def plan_epochs(
    tokens_per_epoch: int,
    num_samples: int | None,
    sequence_length: int,
    extra_token: bool | int = True,
    *,
    drop_last: bool = True,
    separate_final_epoch_threshold: int | float = SEPARATE_FINAL_EPOCH_THRESHOLD,
    source: str = "the dataset",
) -> EpochPlan:
    """Put the counts of one split together; see the functions below for each.

    Raises:
        ValueError: see `number_of_epochs`.
    """
    epochs = number_of_epochs(tokens_per_epoch, num_samples, sequence_length, extra_token, source)
    return EpochPlan(
        tokens_per_epoch,
        epochs,
        number_of_samples(epochs, tokens_per_epoch, sequence_length, extra_token, drop_last),
        final_epoch(
            epochs,
            tokens_per_epoch,
            num_samples,
            sequence_length,
            extra_token,
            separate_final_epoch_threshold,
        ),
    )


def number_of_epochs(
    tokens_per_epoch: int,
    num_samples: int | None,
    sequence_length: int,
    extra_token: bool | int = True,
    source: str = "the dataset",
) -> int:
    """The fewest epochs that hold `num_samples` samples and the token after the last one.

    `num_samples` None means one epoch.

    Args:
        tokens_per_epoch: tokens of all documents of the split, once.
        num_samples: samples asked for.
        sequence_length: tokens of a sample.
        extra_token: whether a sample peeks at the token after it.
        source: what is read, for error texts ("valid split of data/corpus (3 documents)").

    Raises:
        ValueError: samples asked of a source without tokens (Megatron-LM never returns here), a
            negative `num_samples`, or a `sequence_length` below 1.
    """
    if sequence_length < 1:
        raise ValueError(f"sequence_length: {sequence_length} is below 1; 4096 would do")
    if num_samples is None:
        return 1
    if num_samples < 0:
        raise ValueError(
            f"num_samples: {num_samples} is negative. Use None for one epoch of {source}"
        )
    if num_samples > 0 and tokens_per_epoch <= 0:
        raise ValueError(
            f"num_samples: {num_samples} samples of {sequence_length} tokens were asked of "
            f"{source}, which has {tokens_per_epoch} tokens: no number of epochs is enough. "
            "Give this split a larger share or more data, or ask it for 0 samples"
        )
    wanted = num_samples * sequence_length + int(extra_token)
    return max(1, -(-wanted // max(tokens_per_epoch, 1)))


def number_of_samples(
    epochs: int,
    tokens_per_epoch: int,
    sequence_length: int,
    extra_token: bool | int = True,
    drop_last: bool = True,
) -> int:
    """Samples in `epochs` epochs; with `drop_last` False, a last partial one counts too.

    Exact for any size. (Megatron-LM divides 32-bit floats when the partial sample is kept and is
    wrong for some sizes past 2^24 tokens.)
    """
    tokens = max(epochs * tokens_per_epoch - int(extra_token), 0)
    return tokens // sequence_length if drop_last else -(-tokens // sequence_length)


def final_epoch(
    epochs: int,
    tokens_per_epoch: int,
    num_samples: int | None,
    sequence_length: int,
    extra_token: bool | int = True,
    threshold: int | float = SEPARATE_FINAL_EPOCH_THRESHOLD,
) -> FinalEpoch:
    """Whether the last epoch is shuffled by itself.

    It is when less than `threshold` of its samples are asked for: shuffled with the rest, they
    would be thinned out evenly, and the documents of a mostly unused epoch would stand in for
    those of the epochs before it.

    Raises:
        ValueError: `epochs` is not what `num_samples` needs.
    """
    if epochs == 1:
        return FinalEpoch(separate=False, samples_before=0)
    if num_samples is None:
        raise ValueError(f"epochs: {epochs} epochs, but num_samples is None, which means 1")
    before = ((epochs - 1) * tokens_per_epoch - int(extra_token)) // sequence_length
    last = num_samples - before
    per_epoch = (tokens_per_epoch - int(extra_token)) // sequence_length
    if not 0 <= last <= per_epoch + 1:
        needed = number_of_epochs(tokens_per_epoch, num_samples, sequence_length, extra_token)
        raise ValueError(
            f"epochs: {epochs} epochs of {tokens_per_epoch} tokens were given for {num_samples} "
            f"samples of {sequence_length} tokens, which need {needed}"
        )
    return FinalEpoch(separate=last < int(threshold * per_epoch), samples_before=before)
