"""A BERT and a T5 run with PyTorch: the loss falls, and a run that stops goes on exactly."""

import hashlib
from copy import deepcopy
from dataclasses import dataclass

import pytest
import torch
from coredata_torch import LoaderConfig, build_train_valid_test_data_iterators
from torch import nn
from torch.nn import functional

DIMENSION, BATCH, STEPS = 32, 16, 24


class Attention(nn.Module):
    """One head, then a dense layer; `mask` (B, Q, K) is True where a query may see a key."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (
            nn.Linear(DIMENSION, DIMENSION) for _ in range(4)
        )
        self.norm, self.wide = nn.LayerNorm(DIMENSION), nn.Linear(DIMENSION, 2 * DIMENSION)
        self.back = nn.Linear(2 * DIMENSION, DIMENSION)

    def forward(self, x, memory, mask):
        scores = self.query(x) @ self.key(memory).transpose(1, 2) * DIMENSION**-0.5
        scores = scores.masked_fill(~mask, -1e9)
        x = x + self.out(scores.softmax(-1) @ self.value(memory))
        return x + self.back(functional.gelu(self.wide(self.norm(x))))


class Bert(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.tokens, self.types = nn.Embedding(vocab_size, DIMENSION), nn.Embedding(2, DIMENSION)
        self.positions = nn.Embedding(64, DIMENSION)
        self.attention, self.order = Attention(), nn.Linear(DIMENSION, 2)

    def forward(self, batch):
        """Masked tokens' loss and next sentences' loss."""
        x = self.tokens(batch["text"]) + self.types(batch["types"]) + self.positions.weight
        x = self.attention(x, x, batch["padding_mask"][:, None, :].bool())
        chosen = batch["loss_mask"].bool()
        logits = x[chosen] @ self.tokens.weight.T
        loss = functional.cross_entropy(logits, batch["labels"][chosen])
        return loss + functional.cross_entropy(self.order(x[:, 0]), batch["is_random"])


class T5(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, DIMENSION), nn.Embedding(64, 32)
        self.encoder, self.decoder, self.cross = Attention(), Attention(), Attention()

    def forward(self, batch):
        """The spans' loss; the dataset's dense masks are True where masked."""
        memory = self.tokens(batch["text_enc"]) + self.positions.weight
        memory = self.encoder(memory, memory, ~batch["enc_attention_mask"][:, 0])
        x = self.tokens(batch["text_dec"])
        x = x + self.positions.weight[: x.shape[1]]
        x = self.decoder(x, x, ~batch["dec_attention_mask"][:, 0])
        x = self.cross(x, memory, ~batch["enc_dec_attention_mask"][:, 0])
        chosen = batch["loss_mask"].bool()
        return functional.cross_entropy(x[chosen] @ self.tokens.weight.T, batch["labels"][chosen])


@dataclass
class Run:
    """Losses and digests of batches, by step, and the state after some of them."""

    losses: list
    digests: list
    state: dict


def digest(batch):
    parts = [batch[name].numpy().tobytes() for name in sorted(batch)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def run(build, tokenizer, name, steps, *, micro_batch=BATCH, state=None, workers=0, keep_at=10):
    """Train until step `steps`, from `state` on."""
    torch.manual_seed(0)
    model = {"BERT": Bert, "T5": T5}[name](tokenizer.vocab_size)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.05) if parameter.dim() > 1 else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    dense = {"create_attention_mask": True} if name == "T5" else {}
    config = LoaderConfig(micro_batch, num_workers=workers)
    data = build_train_valid_test_data_iterators(
        lambda sizes: (build(name, sizes[0], **dense), None, None),
        (STEPS * BATCH, 0, 0),
        config=config,
    )
    done = 0
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        data.load_state_dict(state["data"])
        done = state["step"]
    found = Run([], [], {})
    for step in range(done + 1, steps + 1):
        rows = [next(data.train) for _ in range(BATCH // micro_batch)]
        batch = {field: torch.cat([part[field] for part in rows]) for field in rows[0]}
        optimizer.zero_grad()
        loss = model(batch)
        loss.backward()
        optimizer.step()
        found.losses.append(loss.item())
        found.digests.append(digest(batch))
        if step == keep_at:
            found.state = {
                "model": {k: v.clone() for k, v in model.state_dict().items()},
                "optimizer": deepcopy(optimizer.state_dict()),
                "data": data.state_dict(),
                "step": step,
            }
    data.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BERT", "T5"])
def test_the_loss_falls_and_a_run_goes_on_exactly(name, build, tokenizer):
    whole = run(build, tokenizer, name, STEPS)
    assert sum(whole.losses[-4:]) / 4 < whole.losses[0] - 0.8, whole.losses
    assert len(set(whole.digests)) == STEPS
    stopped = run(build, tokenizer, name, 10)
    assert stopped.digests == whole.digests[:10]
    assert stopped.losses == whole.losses[:10]
    same = run(build, tokenizer, name, STEPS, state=stopped.state)
    assert same.digests == whole.digests[10:]
    assert same.losses == whole.losses[10:]
    # Another micro batch, and reading in another process.
    other = run(build, tokenizer, name, 14, state=stopped.state, micro_batch=4, workers=1)
    assert other.digests == whole.digests[10:14]
