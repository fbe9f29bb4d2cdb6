"""Documents are isolated by `segment_ids`, in the order of the text and in the balanced order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coredata_jax import ShardedBatches, load_balanced_order
from meshes import as_numpy, mesh_of

from coredata.testing import ArrayDataset, assert_same_batch

VOCABULARY, WIDTH = 301, 8


def attention_logits(parameters, batch):
    """One layer of causal attention, which sees only earlier tokens of the same document."""
    embedding, query, key, value = parameters
    x = embedding[batch["tokens"]]
    q, k, v = x @ query, x @ key, x @ value
    positions, segments = batch["positions"], batch["segment_ids"]
    seen = (positions[:, :, None] >= positions[:, None, :]) & (
        segments[:, :, None] == segments[:, None, :]
    )
    scores = jnp.where(seen, jnp.einsum("bqd,bkd->bqk", q, k), -1e9)
    return jax.nn.softmax(scores) @ v @ embedding.T


@pytest.fixture(scope="module")
def parameters():
    shapes = [(VOCABULARY, WIDTH), *[(WIDTH, WIDTH)] * 3]
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return [jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)]


def run(dataset, parameters, *, balanced: bool, isolated: bool) -> np.ndarray:
    """The logits of the first batch, in the order of the text."""
    mesh = mesh_of(data=2, sequence=4)
    with ShardedBatches(dataset, 4, mesh, "data", "sequence", load_balanced=balanced) as batches:
        batch = next(batches)
        order = batches.sequence_order(16)
    batch["positions"] = jnp.broadcast_to(order.positions, (4, 16))
    if not isolated:
        batch["segment_ids"] = jnp.ones_like(batch["segment_ids"])
    return np.asarray(jax.jit(attention_logits)(parameters, batch))[:, order.inverse]


@pytest.mark.parametrize("balanced", [False, True])
def test_changing_one_document_leaves_the_logits_of_the_others(gpt, parameters, balanced):
    batch = gpt.get_batch(np.arange(4))
    row = int(np.argmax(batch["segment_ids"].max(axis=1)))
    first = batch["segment_ids"][row] == 1
    assert 0 < first.sum() < 16, "the sample must hold two documents"
    changed = {name: array.copy() for name, array in batch.items()}
    changed["tokens"][row, first] = (changed["tokens"][row, first] + 1) % VOCABULARY
    for isolated in (True, False):
        options = {"balanced": balanced, "isolated": isolated}
        before = run(ArrayDataset(batch), parameters, **options)
        after = run(ArrayDataset(changed), parameters, **options)
        differs = np.abs(after - before).max(axis=2) > 1e-6
        assert differs[row, first].all()
        assert differs[row, ~first].any() == (not isolated)
        assert not np.delete(differs, row, axis=0).any()


def test_the_balanced_order_gives_the_same_logits(gpt, parameters):
    plain = run(gpt, parameters, balanced=False, isolated=True)
    balanced = run(gpt, parameters, balanced=True, isolated=True)
    np.testing.assert_allclose(balanced, plain, rtol=1e-4, atol=1e-4)


def test_each_device_holds_an_early_and_a_late_chunk(gpt):
    mesh = mesh_of(sequence=4)
    with ShardedBatches(gpt, 2, mesh, (), "sequence", load_balanced=True) as batches:
        batch = next(batches)
        order = batches.sequence_order(16)
    held = {
        shard.index[1].start // 4: np.asarray(shard.data)[0].tolist()
        for shard in batch["position_ids"].addressable_shards
    }
    assert held == {0: [0, 1, 14, 15], 1: [2, 3, 12, 13], 2: [4, 5, 10, 11], 3: [6, 7, 8, 9]}
    assert order.positions.tolist() == [token for device in range(4) for token in held[device]]
    assert order.positions[order.inverse].tolist() == list(range(16))
    whole = gpt.get_batch(np.arange(2))
    narrow = {k: v.astype(np.int32) if v.dtype == np.int64 else v for k, v in whole.items()}
    assert_same_batch(as_numpy(batch, order.inverse), narrow, "back in the order of the text")


def test_one_device_needs_no_order():
    assert load_balanced_order(5, 1).positions.tolist() == [0, 1, 2, 3, 4]
