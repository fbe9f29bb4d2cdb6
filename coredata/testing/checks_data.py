"""The invariants on a user's own token files, and on their blend."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from coredata._typing import Integer
from coredata.blending import normalize
from coredata.datasets import (
    BlendedDataset,
    BlendedMegatronDatasetBuilder,
    GPTDataset,
    GPTDatasetConfig,
)
from coredata.datasets.protocol import Dataset
from coredata.formats import IndexedDataset, verify_indexed
from coredata.indices import Split, number_of_epochs
from coredata.loading import BatchLoader
from coredata.sampling import MegatronPretrainingSampler
from coredata.testing.blends import assert_blend_sequential, assert_blend_shares
from coredata.testing.checks import Check, CheckResult, run_check
from coredata.testing.compare import assert_same_array
from coredata.testing.contract import assert_dataset_contract
from coredata.testing.corpora import read_tokens
from coredata.testing.orders import assert_epoch_exact, assert_permutation, assert_tokens_exact
from coredata.testing.reference import reference_gpt_indices
from coredata.testing.runs import assert_resume_exact, assert_same_global_batches
from coredata.text import NullTokenizer

BLEND = "Blend"
"""The heading of the checks of the blend; those of a file have its prefix."""

MOST_SAMPLES = 2_000_000
"""Plans of longer datasets are looked at up to here."""

MOST_TOKENS = 20_000_000
"""Contents of larger files are not counted token by token."""

_RANKS = (4, 1, 2, 3, 8)
_GLOBAL_BATCH = 24
_RUN = 3 * _GLOBAL_BATCH
_STEPS = 12
_BLENDED = 2_000


@dataclass(frozen=True)
class DataSettings:
    """What is checked, and how it is cut into samples."""

    prefixes: Sequence[str]
    """Token files, without .bin and .idx."""

    weights: Sequence[float] | None = None
    """Their shares of a blend; None to weight each by its tokens."""

    sequence_length: int | None = None
    """Tokens of a sample; None for 1,024, or less where a file is small."""

    random_seed: int = 1234
    vocab_size: int | None = None
    """Every token must be below it; None to leave the tokens unread."""


def run_data_checks(settings: DataSettings) -> Iterator[CheckResult]:
    """Run the checks; each result comes when it is known.

    A file whose structure is damaged has no further checks, and then there are none of the blend.
    """
    sound = True
    for prefix in settings.prefixes:
        structure = run_check(Check(prefix, "token file", partial(_file, settings, prefix)))
        yield structure
        sound &= structure.passed
        if structure.passed:
            yield from map(run_check, _prefix_checks(settings, prefix))
    if sound and (len(settings.prefixes) > 1 or settings.weights is not None):
        yield from map(run_check, _blend_checks(settings))


def open_gpt_dataset(
    settings: DataSettings,
    prefix: str,
    num_samples: int | None,
    documents: Integer[np.ndarray, " documents"] | None = None,
) -> GPTDataset:
    """GPT samples of a whole file, or of some of its documents; nothing is cached on disk."""
    source = IndexedDataset(prefix)
    exposed = np.arange(len(source)) if documents is None else documents
    lengths = source.sequence_lengths[exposed]
    config = _config(settings, ([prefix], None), int(lengths.sum(dtype=np.int64)))
    return GPTDataset(source, None, exposed.astype(np.int32), num_samples, Split.train, config)


def _config(
    settings: DataSettings, blend: tuple[Sequence[str], Sequence[float] | None], tokens: int
) -> GPTDatasetConfig:
    length = settings.sequence_length
    if length is None:
        length = max(1, min(1024, tokens // 64))
    return GPTDatasetConfig(
        random_seed=settings.random_seed,
        sequence_length=length,
        blend=blend,
        split="1,0,0",
        tokenizer=NullTokenizer(settings.vocab_size or 2**31 - 2),
    )


def _prefix_checks(settings: DataSettings, prefix: str) -> list[Check]:
    steps: list[tuple[str, Callable[[DataSettings, str], str]]] = [
        ("mapped and positional reads agree", _reads),
        ("every token once per epoch", _epoch),
        ("order equals plain loops", _loops),
        ("dataset contract", _contract),
        ("resume at every step", _resume),
        ("same batches on any ranks", _ranks),
    ]
    return [Check(prefix, name, partial(run, settings, prefix)) for name, run in steps]


def _file(settings: DataSettings, prefix: str) -> str:
    """Header, lengths, pointers, document boundaries; with a vocabulary size, every token."""
    found = verify_indexed(prefix, settings.vocab_size)
    if found.multimodal:
        raise AssertionError(f"{prefix}: it has modes; GPT samples are of plain files")
    if not found.tokens:
        raise AssertionError(f"{prefix}: it has no tokens ({found.documents} documents)")
    return f"{found.documents:,} documents, {found.tokens:,} tokens, {found.dtype}"


def _reads(settings: DataSettings, prefix: str) -> str:
    """The same documents through a map and by reading at a position."""
    mapped, positional = IndexedDataset(prefix), IndexedDataset(prefix, mmap=False)
    chosen = np.unique(np.linspace(0, len(mapped) - 1, 64).astype(np.int64))
    assert_same_array(
        read_tokens(positional, chosen), read_tokens(mapped, chosen), f"{prefix}, read by position"
    )
    for source in (mapped, positional):
        source.close()
    return f"{len(chosen)} documents"


def _epoch(settings: DataSettings, prefix: str) -> str:
    """Plan and, for a file that is not too large, content; one epoch, and between two and three."""
    dataset = open_gpt_dataset(settings, prefix, None)
    runs = [dataset]
    if len(dataset) * 3 <= MOST_SAMPLES:
        runs.append(open_gpt_dataset(settings, prefix, max(1, int(2.5 * len(dataset)))))
    lengths = dataset.dataset.sequence_lengths
    total = int(lengths.sum(dtype=np.int64))
    for run in runs:
        length = run.config.sequence_length
        epochs = number_of_epochs(total, run.num_samples, length)
        assert_permutation(run.shuffle_index)
        assert_epoch_exact(
            run.order, lengths, sequence_length=length, epochs=epochs, first=MOST_SAMPLES
        )
        if total * epochs <= MOST_TOKENS:
            assert_tokens_exact(run, read_tokens(run.dataset, run.indices), epochs=epochs)
    looked = min(len(dataset), MOST_SAMPLES)
    depth = "also read" if total <= MOST_TOKENS else "plan only"
    return f"{looked:,} of {len(dataset):,} samples of {length:,}, {depth}"


def _loops(settings: DataSettings, prefix: str) -> str:
    """The first documents with tokens, against the readable definition."""
    lengths = IndexedDataset(prefix).sequence_lengths.astype(np.int64)
    documents = np.flatnonzero(lengths[:1_000_000])[:500]
    fit = int(np.searchsorted(np.cumsum(lengths[documents]), 500_000, side="right"))
    documents = documents[: max(1, fit)]
    if not len(documents):
        return "none: the first million documents have no tokens"
    dataset = open_gpt_dataset(settings, prefix, _STEPS, documents)
    expected = reference_gpt_indices(
        lengths[: int(documents[-1]) + 1].tolist(),
        documents.tolist(),
        _STEPS,
        dataset.config.sequence_length,
        settings.random_seed,
    )
    names = ("document_index", "sample_index", "shuffle_index")
    for name, array in zip(names, expected, strict=True):
        assert_same_array(getattr(dataset, name), array, f"{prefix}, {name}")
    return f"{len(documents)} documents"


def _contract(settings: DataSettings, prefix: str) -> str:
    assert_dataset_contract(open_gpt_dataset(settings, prefix, _RUN))
    return "alone, batched, threaded, padded, pickled"


def _resume(settings: DataSettings, prefix: str) -> str:
    return _resume_dataset(open_gpt_dataset(settings, prefix, _RUN))


def _ranks(settings: DataSettings, prefix: str) -> str:
    return _ranks_dataset(open_gpt_dataset(settings, prefix, _RUN))


def _resume_dataset(dataset: Dataset) -> str:
    sampler = MegatronPretrainingSampler(len(dataset), 0, 4, 0, 1)
    assert_resume_exact(partial(BatchLoader, dataset, sampler), _STEPS, follow=3)
    return f"{_STEPS} steps, with prefetch"


def _ranks_dataset(dataset: Dataset) -> str:
    steps = _RUN // _GLOBAL_BATCH
    assert_same_global_batches(dataset, _RANKS, global_batch_size=_GLOBAL_BATCH, steps=steps)
    return f"DP 4 to 1, 2, 3, 8; {steps} global batches of {_GLOBAL_BATCH}"


def _blend_checks(settings: DataSettings) -> list[Check]:
    """Shares, contract, resume and ranks of the blend of all files."""
    return [
        Check(BLEND, "shares at every point", lambda: _shares(settings)),
        Check(BLEND, "dataset contract", lambda: _blend_contract(settings)),
        Check(BLEND, "resume at every step", lambda: _resume_dataset(_blend(settings))),
        Check(BLEND, "same batches on any ranks", lambda: _ranks_dataset(_blend(settings))),
    ]


def _blend(settings: DataSettings) -> BlendedDataset:
    """All files, by their weights or else by their tokens."""
    prefixes = list(settings.prefixes)
    tokens = [int(IndexedDataset(p).sequence_lengths.sum(dtype=np.int64)) for p in prefixes]
    weights = normalize(tokens if settings.weights is None else settings.weights)
    config = _config(settings, (prefixes, weights), sum(tokens) // len(tokens))
    return BlendedMegatronDatasetBuilder(GPTDataset, [_BLENDED, 0, 0], None, config).build()[0]


def _shares(settings: DataSettings) -> str:
    dataset = _blend(settings)
    assert_blend_shares(dataset.dataset_index, dataset.weights)
    assert_blend_sequential(dataset.dataset_index, dataset.dataset_sample_index)
    return f"{len(dataset):,} samples of {len(dataset.datasets)} files"


def _blend_contract(settings: DataSettings) -> str:
    assert_dataset_contract(_blend(settings))
    return "alone, batched, threaded, padded, pickled"
