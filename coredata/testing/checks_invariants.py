"""What must hold whatever the data, shown on seeded random corpora: as checks."""

from functools import partial
from itertools import product

import numpy as np

from coredata.blending import build_blending_indices, normalize
from coredata.datasets import ArraySource, GPTDataset, GPTDatasetConfig
from coredata.indices import Split, build_gpt_indices, number_of_epochs
from coredata.loading import BatchLoader
from coredata.sampling import (
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    torch_randperm,
)
from coredata.testing.blends import assert_blend_sequential, assert_blend_shares
from coredata.testing.checks import Check
from coredata.testing.compare import assert_same_array
from coredata.testing.contract import assert_dataset_contract
from coredata.testing.corpora import flattened, random_corpus, read_tokens
from coredata.testing.orders import assert_epoch_exact, assert_permutation, assert_tokens_exact
from coredata.testing.reference import reference_blend, reference_gpt_indices, reference_randperm
from coredata.testing.runs import assert_resume_exact, assert_same_global_batches
from coredata.text import ByteTokenizer

GROUP = "Invariants"

RANKS = (4, 1, 2, 3, 8)
"""Data-parallel sizes that are compared; a run on the first is continued on the others."""

_INDICES = ("document_index", "sample_index", "shuffle_index")


def invariant_checks(seed: int) -> list[Check]:
    """The checks; nothing runs before they do."""
    return [
        Check(GROUP, "every token once per epoch", lambda: _epochs(seed)),
        Check(GROUP, "orders equal plain loops", lambda: _loops(seed)),
        Check(GROUP, "permutations", lambda: _permutations(seed)),
        Check(GROUP, "blend shares at every point", lambda: _blends(seed)),
        Check(GROUP, "dataset contract", lambda: _contract(seed)),
        Check(GROUP, "resume at every step", lambda: _resume(seed)),
        Check(GROUP, "same batches on any ranks", lambda: _ranks(seed)),
    ]


def random_gpt_dataset(
    seed: int,
    num_samples: int | None,
    *,
    sequence_length: int = 16,
    documents: int = 60,
    longest: int = 60,
) -> GPTDataset:
    """GPT samples of a random corpus in memory."""
    corpus = random_corpus(seed, documents=documents, longest=longest)
    tokens, lengths = flattened(corpus)
    config = GPTDatasetConfig(
        random_seed=seed,
        sequence_length=sequence_length,
        blend=(["random"], None),
        split="1,0,0",
        tokenizer=ByteTokenizer(),
    )
    exposed = np.arange(len(corpus), dtype=np.int32)
    source = ArraySource(tokens, lengths, "random")
    return GPTDataset(source, None, exposed, num_samples, Split.train, config)


def _epochs(seed: int) -> str:
    """Plans and reads, one epoch and several, short documents and long ones."""
    count = 0
    for longest, samples, length in product((3, 20, 200), (None, 150, 700), (8, 33)):
        dataset = random_gpt_dataset(seed + count, samples, sequence_length=length, longest=longest)
        lengths = dataset.dataset.sequence_lengths
        total = int(lengths.sum())
        epochs = number_of_epochs(total, samples, length)
        assert_epoch_exact(dataset.order, lengths, sequence_length=length, epochs=epochs)
        tokens = read_tokens(dataset.dataset, dataset.indices)
        assert_tokens_exact(dataset, tokens, epochs=epochs)
        count += 1
    return f"{count} corpora, 1 to many epochs, also read"


def _loops(seed: int) -> str:
    """Compiled indices against the readable definition."""
    random = np.random.default_rng(seed)
    count = 100
    for _ in range(count):
        lengths = random.integers(0, 12, random.integers(1, 20)).astype(np.int32)
        lengths[0] += 1
        documents = np.arange(len(lengths), dtype=np.int32)
        samples = None if random.random() < 0.3 else int(random.integers(1, 80))
        length, own = int(random.integers(1, 20)), int(random.integers(0, 2**32))
        extra, drop = int(random.integers(2)), bool(random.integers(2))
        compiled = build_gpt_indices(
            lengths,
            documents,
            samples,
            length,
            own,
            add_extra_token=extra,
            drop_last_partial_sequence=drop,
        )
        expected = reference_gpt_indices(
            lengths.tolist(), documents.tolist(), samples, length, own, extra=extra, drop_last=drop
        )
        what = f"lengths {lengths.tolist()}, {samples} samples of {length}, seed {own}"
        for name, array in zip(_INDICES, expected, strict=True):
            assert_same_array(getattr(compiled, name), array, f"{what}: {name}")
    for number in range(20):
        shares = normalize(random.pareto(1, number + 1).tolist())
        blends = zip(build_blending_indices(shares, 200), reference_blend(shares, 200), strict=True)
        for actual, wanted in blends:
            assert_same_array(actual, wanted, f"blend of {shares}")
        assert_same_array(
            torch_randperm(50, seed + number), reference_randperm(50, seed + number), "randperm"
        )
    return f"{count} GPT orders, 20 blends, 20 permutations"


def _permutations(seed: int) -> str:
    """Shuffle indices, and the cyclic sampler's epochs."""
    for samples in (None, 10, 1000):
        assert_permutation(random_gpt_dataset(seed, samples).shuffle_index)
    for n in (0, 1, 2, 1000, 100_000):
        assert_permutation(torch_randperm(n, seed), n)
    for epoch in range(3):
        ranks = [
            MegatronPretrainingRandomSampler(60, 60 * epoch, 5, rank, 4, data_sharding=False)
            for rank in range(4)
        ]
        assert_permutation(np.concatenate([batch for rank in ranks for batch in rank]), 60)
    return "3 shuffle indices, randperm, 3 cyclic epochs"


def _blends(seed: int) -> str:
    """Equal, skewed and random shares; few datasets and a thousand."""
    random = np.random.default_rng(seed)
    blends = [[1.0], [0.7, 0.3], [1.0] * 7, [1.0, 0.0, 1e-9], random.pareto(1, 1000).tolist()]
    for weights in blends:
        datasets, samples = build_blending_indices(normalize(weights), 20_000)
        assert_blend_shares(datasets, weights)
        assert_blend_sequential(datasets, samples)
    return f"{len(blends)} blends of 1 to 1,000 datasets"


def _contract(seed: int) -> str:
    assert_dataset_contract(random_gpt_dataset(seed, 100))
    return "alone, batched, threaded, padded, pickled"


def _resume(seed: int) -> str:
    """With and without prefetch; to the end, and through three epochs."""
    dataset = random_gpt_dataset(seed, 60)
    total = len(dataset)
    sequential = MegatronPretrainingSampler(total, 0, 4, 0, 2)
    cyclic = MegatronPretrainingRandomSampler(24, 0, 4, 1, 2, data_sharding=False)
    for prefetch in (0, 2):
        load = partial(BatchLoader, dataset, prefetch=prefetch)
        assert_resume_exact(partial(load, sequential), total)
        assert_resume_exact(partial(load, cyclic), 9, follow=3)
    return f"{len(sequential)} steps to the end, 9 over 3 epochs"


def _ranks(seed: int) -> str:
    """In order, and cyclic, stopped in the middle of the second epoch."""
    dataset = random_gpt_dataset(seed, 150)
    assert_same_global_batches(dataset, RANKS, steps=3)

    def cyclic(rank: int, size: int, micro: int) -> MegatronPretrainingRandomSampler:
        return MegatronPretrainingRandomSampler(48, 0, micro, rank, size, data_sharding=False)

    assert_same_global_batches(dataset, RANKS, steps=7, make_sampler=cyclic, ordered=False)
    return "DP 4 to 1, 2, 3, 8; sequential and cyclic"
