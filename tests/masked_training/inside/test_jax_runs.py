"""A BERT and a T5 run with JAX: the loss falls, and a run that stops goes on exactly."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coredata_jax import ShardedBatches
from jax.sharding import Mesh

DIMENSION, BATCH, STEPS, STOP = 32, 16, 20, 6
FIELDS = {
    "BERT": ("text", "types", "labels", "padding_mask", "loss_mask"),
    "T5": ("text_enc", "text_dec", "labels", "loss_mask", "enc_mask", "dec_mask"),
}
BLOCKS = {"BERT": ("encoder",), "T5": ("encoder", "decoder", "cross")}


def first_parameters(name, vocab_size):
    shapes = {"tokens": (vocab_size, DIMENSION), "types": (2, DIMENSION), "order": (DIMENSION, 2)}
    shapes["positions"] = (64, DIMENSION)
    for block in BLOCKS[name]:
        shapes |= {f"{block}_{part}": (DIMENSION, DIMENSION) for part in ("q", "k", "v", "out")}
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return {
        part: 0.05 * jax.random.normal(key, shape)
        for key, (part, shape) in zip(keys, shapes.items(), strict=True)
    }


def attend(parameters, block, x, memory, seen):
    query, key, value = (
        side @ parameters[f"{block}_{part}"]
        for side, part in ((x, "q"), (memory, "k"), (memory, "v"))
    )
    scores = query @ key.transpose(0, 2, 1) * DIMENSION**-0.5
    return x + jax.nn.softmax(jnp.where(seen, scores, -1e9)) @ value @ parameters[f"{block}_out"]


def mean_loss(logits, labels, loss_mask):
    likelihoods = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(likelihoods, jnp.maximum(labels, 0)[..., None], axis=-1)[..., 0]
    return -(chosen * loss_mask).sum() / loss_mask.sum()


def bert_loss(parameters, batch):
    x = parameters["tokens"][batch["text"]] + parameters["types"][batch["types"]]
    x = x + parameters["positions"]
    x = attend(parameters, "encoder", x, x, batch["padding_mask"][:, None, :] == 1)
    order = mean_loss(
        x[:, :1] @ parameters["order"], batch["is_random"][:, None], 1.0 + 0 * x[:, :1, 0]
    )
    return order + mean_loss(x @ parameters["tokens"].T, batch["labels"], batch["loss_mask"])


def t5_loss(parameters, batch):
    """Attention by segments: the masks that a sample has are segment ids, 0 for padding."""
    enc, dec = batch["enc_mask"], batch["dec_mask"]
    memory = parameters["tokens"][batch["text_enc"]] + parameters["positions"]
    memory = attend(parameters, "encoder", memory, memory, enc[:, :, None] == enc[:, None, :])
    x = parameters["tokens"][batch["text_dec"]] + parameters["positions"][: dec.shape[1]]
    causal = jnp.tril(jnp.ones((dec.shape[1],) * 2, bool))
    x = attend(parameters, "decoder", x, x, (dec[:, :, None] == dec[:, None, :]) & causal)
    x = attend(parameters, "cross", x, memory, dec[:, :, None] == enc[:, None, :])
    return mean_loss(x @ parameters["tokens"].T, batch["labels"], batch["loss_mask"])


def one_size(parameter, gradient):
    """A step of nearly the same size for every number whose gradient is not tiny."""
    return parameter - 0.01 * gradient / (jnp.abs(gradient) + 1e-4)


def descend(loss_of, parameters, batch):
    loss, gradients = jax.value_and_grad(loss_of)(parameters, batch)
    return jax.tree.map(one_size, parameters, gradients), loss


STEP_OF = {
    "BERT": jax.jit(partial(descend, bert_loss)),
    "T5": jax.jit(partial(descend, t5_loss)),
}


def run(build, vocab_size, name, steps, *, devices=2, state=None, keep_at=STOP):
    """Losses and batches by step, and the state after `keep_at` steps."""
    parameters = first_parameters(name, vocab_size)
    mesh = Mesh(np.array(jax.devices()[:devices]), ("data",))
    losses, seen, kept = [], [], None
    dataset = build(name, STEPS * BATCH)
    with ShardedBatches(dataset, BATCH, mesh, sequence_fields=FIELDS[name]) as batches:
        done = 0
        if state is not None:
            parameters, saved = state
            batches.load_state_dict(json.loads(saved))
            done = keep_at
        for step in range(done + 1, steps + 1):
            batch = next(batches)
            seen.append({field: np.asarray(values) for field, values in batch.items()})
            parameters, loss = STEP_OF[name](parameters, batch)
            losses.append(float(loss))
            if step == keep_at:
                kept = parameters, json.dumps(batches.state_dict())
    return losses, seen, kept


def assert_same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        for field, values in ours.items():
            np.testing.assert_array_equal(values, theirs[field])


@pytest.mark.parametrize("name", ["BERT", "T5"])
def test_the_loss_falls_and_a_run_goes_on_exactly(name, build, tokenizer):
    vocab_size = tokenizer.vocab_size
    losses, seen, _ = run(build, vocab_size, name, STEPS)
    assert sum(losses[-4:]) / 4 < losses[0] - 0.5, losses
    expected = build(name, STEPS * BATCH).get_batch(np.arange(BATCH))
    for field, values in seen[0].items():
        np.testing.assert_array_equal(values, expected[field])
        assert values.dtype == np.int32
    stopped, before, state = run(build, vocab_size, name, STOP)
    assert stopped == losses[:STOP]
    assert_same(before, seen[:STOP])
    after, rest, _ = run(build, vocab_size, name, STEPS, state=state)
    assert after == losses[STOP:]
    assert_same(rest, seen[STOP:])
    # On another mesh the batches are the same, and sums but for their order.
    parameters = jax.tree.map(np.asarray, state[0])
    other, rest, _ = run(build, vocab_size, name, STOP + 3, devices=1, state=(parameters, state[1]))
    assert_same(rest, seen[STOP : STOP + 3])
    np.testing.assert_allclose(other, losses[STOP : STOP + 3], rtol=1e-3)
