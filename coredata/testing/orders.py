"""Orders of samples: permutations, and epochs in which every token comes once."""

import numpy as np

from coredata._typing import Integer
from coredata.datasets.protocol import Dataset
from coredata.indices import SampleOrder

_BLOCK = 1 << 16


def assert_permutation(numbers: Integer[np.ndarray, " n"], n: int | None = None) -> None:
    """`numbers` holds each of 0 … n − 1 once (`n` is its length unless given).

    Raises:
        AssertionError: it does not; it names a number that is missing, surplus or repeated.
    """
    count = len(numbers) if n is None else n
    if len(numbers) != count:
        raise AssertionError(f"a permutation of {count}: it holds {len(numbers)} numbers")
    if not count:
        return
    if int(numbers.min()) < 0 or int(numbers.max()) >= count:
        wrong = numbers[(numbers < 0) | (numbers >= count)][0]
        raise AssertionError(f"a permutation of 0 … {count - 1}: it holds {wrong}")
    times = np.bincount(numbers, minlength=count)
    if (times != 1).any():
        missing, repeated = int((times == 0).argmax()), int(times.argmax())
        raise AssertionError(
            f"a permutation of 0 … {count - 1}: {repeated} comes {times[repeated]} times, "
            f"{missing} does not come ({int((times == 0).sum())} are missing)"
        )


def assert_epoch_exact(
    order: SampleOrder,
    sequence_lengths: Integer[np.ndarray, " sequences"],
    documents: Integer[np.ndarray, " documents"] | None = None,
    *,
    sequence_length: int,
    epochs: int = 1,
    add_extra_token: bool = True,
    first: int | None = None,
) -> None:
    """All samples of an order together read every token once per epoch.

    A sample owns its S tokens; the extra one it sees is its neighbour's. The only tokens that may
    be missing are those of the last, short sample: fewer than S + 1 over all epochs. Reads the
    plan, no data; needs memory for the spans of all samples, about 50 bytes each.

    Args:
        order: which tokens make sample k.
        sequence_lengths: tokens of each sequence of the source.
        documents: the sequences exposed; all of them by default.
        sequence_length: S.
        epochs: how often each token is due.
        add_extra_token: whether samples see one token more than they own.
        first: look only at so many samples from the start. What is missing is then not known; a
            token that comes too often still is.

    Raises:
        AssertionError: a token that is read too often or not at all, or a sample that is too long;
            it names the sequence and the offset.
    """
    lengths = sequence_lengths.astype(np.int64)
    exposed = np.arange(len(lengths)) if documents is None else documents.astype(np.int64)
    begins = np.cumsum(lengths) - lengths
    count = len(order) if first is None else min(first, len(order))
    starts, ends = _owned(order, count, begins, sequence_length, int(add_extra_token))
    due = _due(begins[exposed], begins[exposed] + lengths[exposed], epochs)
    places = np.concatenate([starts, ends, *due[:2]])
    change = np.concatenate([np.ones(len(starts), np.int64), -np.ones(len(ends), np.int64), due[2]])
    by_place = np.argsort(places, kind="stable")
    surplus = np.cumsum(change[by_place])[:-1]
    widths = np.diff(places[by_place])
    wrong = np.flatnonzero((surplus > 0) & (widths > 0))
    if len(wrong):
        place = int(places[by_place][wrong[0]])
        raise AssertionError(
            f"every token once per epoch: {_named(place, begins, lengths)} comes "
            f"{int(surplus[wrong[0]])} times more often than in {epochs} epochs"
        )
    missing = int(-(surplus * widths).sum())
    if count == len(order) and missing >= sequence_length + int(add_extra_token):
        gap = np.flatnonzero((surplus < 0) & (widths > 0))[0]
        place = int(places[by_place][gap])
        raise AssertionError(
            f"every token once per epoch: {missing} tokens are missing in {epochs} epochs, the "
            f"first {_named(place, begins, lengths)}; only the last, short sample may be left out"
        )


def _owned(
    order: SampleOrder, count: int, begins: np.ndarray, sequence_length: int, extra: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where the tokens that samples own start and end, counted through the source."""
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for first in range(0, count, _BLOCK):
        samples = np.arange(first, min(first + _BLOCK, count), dtype=np.int64)
        spans = order.spans(samples)
        lengths = spans.lengths.copy()
        last = spans.row_splits[1:] - 1
        sums = np.add.reduceat(np.append(lengths, 0), spans.row_splits[:-1])
        if (sums > sequence_length + extra).any() or (np.diff(spans.row_splits) == 0).any():
            sample = int(samples[((sums > sequence_length + extra) | (sums <= 0)).argmax()])
            raise AssertionError(
                f"sample {sample} has {int(sums[sample - first])} tokens, expected 1 to "
                f"{sequence_length + extra}"
            )
        lengths[last] -= extra
        begin = begins[spans.sequences] + spans.offsets
        starts.append(begin)
        ends.append(begin + lengths)
    return np.concatenate(starts), np.concatenate(ends)


def _due(
    starts: np.ndarray, ends: np.ndarray, epochs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for what is due: `epochs` times each document, as negative counts."""
    counts = np.full(len(starts), epochs, np.int64)
    return starts, ends, np.concatenate([-counts, counts])


def _named(place: int, begins: np.ndarray, lengths: np.ndarray) -> str:
    """A token of the source, in words. Empty sequences share their place with the next one."""
    sequence = int(np.searchsorted(begins, place, side="right")) - 1
    return f"token {place - int(begins[sequence])} of sequence {sequence} ({lengths[sequence]})"


def assert_tokens_exact(
    dataset: Dataset, tokens: Integer[np.ndarray, " tokens"], *, epochs: int = 1, peeked: int = 1
) -> None:
    """The samples of a dataset, read, hold every token of the data `epochs` times.

    Compares how often each token id occurs in the `tokens` field of all samples. As in
    `assert_epoch_exact`, only the last, short sample may be missing. Samples must not be padded. Of
    a dataset without samples nothing can be said.

    Args:
        dataset: samples with a field `tokens`.
        tokens: all tokens of the documents that the dataset exposes.
        epochs: how often each is due.
        peeked: tokens that a sample sees beyond its own (for the last label).

    Raises:
        AssertionError: an id that comes too often, or too many that are missing.
    """
    seen = np.zeros(int(tokens.max(initial=0)) + 1, np.int64)
    length = 0
    for first in range(0, len(dataset), 256):
        batch = dataset.get_batch(np.arange(first, min(first + 256, len(dataset))))["tokens"]
        length = batch.shape[1]
        counts = np.bincount(batch.reshape(-1), minlength=len(seen))
        if len(counts) > len(seen):
            raise AssertionError(f"token {len(counts) - 1} is read, but is not in the data")
        seen += counts
    due = np.bincount(tokens, minlength=len(seen)) * epochs
    if (seen > due).any():
        token = int((seen > due).argmax())
        raise AssertionError(
            f"token {token} is read {seen[token]} times, expected at most {due[token]} "
            f"in {epochs} epochs"
        )
    missing = int((due - seen).sum())
    if len(dataset) and missing >= length + peeked:
        token = int((due - seen).argmax())
        raise AssertionError(
            f"{missing} tokens are not read in {epochs} epochs, of token {token} "
            f"{due[token] - seen[token]}; only the last, short sample may be left out"
        )
