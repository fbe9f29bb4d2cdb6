"""Small corpora, seeded, in memory or as token files."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from coredata._typing import Integer
from coredata.datasets.protocol import TokenSource
from coredata.formats import IndexedDatasetBuilder


def random_corpus(
    seed: int,
    *,
    documents: int = 40,
    longest: int = 60,
    vocab_size: int = 256,
    eod: int | None = 256,
) -> list[np.ndarray]:
    """Documents of random tokens, int64, of 1 to `longest` tokens each, the end token included.

    Tokens are below `vocab_size`; each document ends in `eod` unless that is None.
    """
    random = np.random.default_rng(seed)
    corpus = []
    for length in random.integers(1, longest + 1, documents).tolist():
        tokens = random.integers(0, vocab_size, length, dtype=np.int64)
        if eod is not None:
            tokens[-1] = eod
        corpus.append(tokens)
    return corpus


def write_corpus(
    prefix: str | os.PathLike[str],
    documents: Sequence[ArrayLike],
    *,
    dtype: DTypeLike = np.uint16,
) -> str:
    """Write one sequence per document to `prefix`.bin and .idx; returns the prefix.

    Raises:
        TokenError: a token that `dtype` cannot hold.
    """
    with IndexedDatasetBuilder(prefix, dtype) as builder:
        for document in documents:
            builder.add_item(document)
            builder.end_document()
        builder.finalize()
    return os.fspath(prefix)


def flattened(documents: Sequence[ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
    """All tokens of a corpus end to end (int64), and the length of each document (int32)."""
    arrays = [np.asarray(document, np.int64) for document in documents]
    lengths = np.array([len(array) for array in arrays], np.int32)
    return np.concatenate([np.empty(0, np.int64), *arrays]), lengths


def read_tokens(source: TokenSource, documents: Integer[np.ndarray, " documents"]) -> np.ndarray:
    """All tokens of some sequences of a source, end to end (int64)."""
    sequences = documents.astype(np.int64)
    lengths = source.sequence_lengths[sequences].astype(np.int64)
    out = np.empty(int(lengths.sum()), np.int64)
    source.read_into(sequences, np.zeros_like(lengths), lengths, out, np.cumsum(lengths) - lengths)
    return out
