"""The sample order, blends and samplers as plain loops: slow, and written to be read.

Each is the definition of what the compiled code computes, bit for bit. Where a result of your own
surprises you, step through these.
"""

from collections.abc import Sequence

import numpy as np

SEPARATE_BELOW = 0.80
"""A last epoch of which less than this share is used is shuffled by itself."""


def reference_gpt_indices(
    sequence_lengths: Sequence[int],
    documents: Sequence[int],
    num_samples: int | None,
    sequence_length: int,
    random_seed: int,
    *,
    extra: int = 1,
    drop_last: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Document index, sample index and shuffle index, in the dtypes of small corpora.

    Args:
        sequence_lengths: tokens of each sequence of the file.
        documents: the sequences exposed; together they have at least one token.
        num_samples: samples asked for, or None for one epoch.
        sequence_length: S.
        random_seed: of the one random stream behind document and shuffle index.
        extra: tokens that a sample sees beyond its own, 1 or 0.
        drop_last: False keeps a last, short sample.
    """
    random = np.random.RandomState(random_seed)
    tokens = sum(sequence_lengths[document] for document in documents)
    epochs = 1
    while num_samples is not None and epochs * tokens < num_samples * sequence_length + extra:
        epochs += 1

    # Does the last epoch get a shuffle of its own?
    separate, before = False, 0
    if num_samples is not None and epochs > 1:
        before = ((epochs - 1) * tokens - extra) // sequence_length
        per_epoch = (tokens - extra) // sequence_length
        separate = num_samples - before < int(SEPARATE_BELOW * per_epoch)

    parts = [epochs - 1, 1] if separate else [epochs]
    shuffled = []
    for repeated in parts:
        part = np.tile(np.asarray(documents, np.int32), repeated)
        random.shuffle(part)
        shuffled.append(part)
    document_index = np.concatenate(shuffled)

    # Lay the documents end to end; sample j starts at token j * S.
    left = epochs * tokens - extra
    samples = max(left // sequence_length if drop_last else -(-left // sequence_length), 0)
    rows = [(0, 0)]
    position, offset = 0, 0
    for _ in range(samples):
        wanted = sequence_length + extra
        while True:
            length = int(sequence_lengths[document_index[position]])
            taken = length - offset
            wanted -= taken
            if wanted <= 0:
                offset += wanted + taken - extra
                break
            if position == len(document_index) - 1:
                offset = length - extra
                break
            position, offset = position + 1, 0
        rows.append((position, offset))
    sample_index = np.array(rows, np.int32)

    parts = [before, samples - before] if separate else [samples]
    shuffled, first = [], 0
    for count in parts:
        part = np.arange(first, first + count, dtype=np.uint32)
        random.shuffle(part)
        shuffled.append(part)
        first += count
    return document_index, sample_index, np.concatenate(shuffled)


def reference_blend(shares: Sequence[float], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Each sample comes from the dataset that is furthest behind its share, the first on a tie.

    The shares are used as they are: `coredata.blending.normalize` makes some of weights.
    """
    share = np.asarray(shares, np.float64)
    drawn = np.zeros(len(share), np.int64)
    datasets, samples = np.empty(size, np.int16), np.empty(size, np.int64)
    for number in range(size):
        chosen = int(np.argmax(share * max(number, 1) - drawn))
        datasets[number], samples[number] = chosen, drawn[chosen]
        drawn[chosen] += 1
    return datasets, samples


def reference_randperm(n: int, seed: int) -> np.ndarray:
    """PyTorch's permutation: from the first element on, swap with one not yet passed."""
    random = np.random.RandomState(seed)
    permutation = np.arange(n)
    for i in range(n - 1):
        other = i + int(random.randint(0, 2**32, dtype=np.uint64)) % (n - i)
        permutation[[i, other]] = permutation[[other, i]]
    return permutation


def reference_sequential_batches(
    total: int, consumed: int, micro_batch_size: int, rank: int, size: int
) -> list[list[int]]:
    """A rank's whole micro batches of the samples in order."""
    batches = []
    block = micro_batch_size * size
    while consumed + block <= total:
        first = consumed + rank * micro_batch_size
        batches.append(list(range(first, first + micro_batch_size)))
        consumed += block
    return batches
