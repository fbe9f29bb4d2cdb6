"""Attention that follows a dataset's boundaries lets no document see another of its sample.

Tokens of one document are changed; the logits of every other document must stay bit for bit.
"""

import numpy as np
import pytest
import torch
from coredata_torch import TorchDataset, collate
from torch import nn
from torch.nn import functional

from coredata.datasets import GPTDataset, GPTDatasetConfig
from coredata.formats import IndexedDataset
from coredata.indices import Split
from coredata.testing import random_corpus, write_corpus
from coredata.text import ByteTokenizer

EOD, SIZE = 256, 32


def by_cu_seqlens(batch):
    """(B, S, S), True where a query may see a key: both lie between the same two boundaries."""
    places = torch.arange(SIZE)
    ends = batch["cu_seqlens"][:, None, 1:]
    document = (places[None, :, None] >= ends).sum(-1)
    return document[:, :, None] == document[:, None, :]


def by_segment_ids(batch):
    segments = batch["segment_ids"]
    return segments[:, :, None] == segments[:, None, :]


def by_reset_mask(batch):
    return ~batch["attention_mask"][:, 0]


def by_nothing(batch):
    return torch.ones(len(batch["tokens"]), SIZE, SIZE, dtype=torch.bool)


KINDS = {
    "cu_seqlens": (by_cu_seqlens, {"inter_document_masking": True}),
    "segment_ids": (by_segment_ids, {"inter_document_masking": True, "segment_ids": True}),
    "reset masks": (
        by_reset_mask,
        {
            "reset_position_ids": True,
            "reset_attention_mask": True,
            "create_attention_mask": True,
        },
    ),
    "nothing": (by_nothing, {}),
}


class Attention(nn.Module):
    """Two layers of attention over embedded tokens and positions."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.tokens, self.positions = nn.Embedding(EOD + 1, 16), nn.Embedding(SIZE, 16)
        self.qkv = nn.ModuleList(nn.Linear(16, 48) for _ in range(2))

    def forward(self, batch, allowed):
        x = self.tokens(batch["tokens"]) + self.positions(batch["position_ids"])
        mask = allowed & torch.ones(SIZE, SIZE).tril().bool()
        for qkv in self.qkv:
            q, k, v = qkv(x).chunk(3, dim=-1)
            x = x + functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return functional.linear(x, self.tokens.weight)


def samples(directory, options):
    corpus = random_corpus(3, documents=40, longest=20, eod=EOD)
    prefix = write_corpus(directory / "corpus", corpus)
    config = GPTDatasetConfig(
        random_seed=7,
        sequence_length=SIZE,
        blend=([prefix], None),
        split="1,0,0",
        tokenizer=ByteTokenizer(),
        **options,
    )
    source = IndexedDataset(prefix)
    documents = np.arange(len(corpus), dtype=np.int32)
    dataset = GPTDataset(source, prefix, documents, 8, Split.train, config)
    return collate(TorchDataset(dataset).__getitems__(list(range(8))))


def documents_of(tokens):
    """A document ends with its end token."""
    return np.concatenate([[0], np.cumsum(tokens == EOD)[:-1]])


@pytest.mark.parametrize("kind", KINDS)
def test_changing_a_document_changes_no_logits_of_another(tmp_path, kind):
    attend, options = KINDS[kind]
    batch = samples(tmp_path, options)
    model, allowed = Attention(), attend(batch)
    tokens = batch["tokens"].clone()
    leaks = changes = 0
    with torch.no_grad():
        before = model(batch, allowed)
        for row in range(len(tokens)):
            documents = documents_of(tokens[row].numpy())
            assert documents[-1] > 0, "the test needs samples of several documents"
            for document in range(documents[-1] + 1):
                inside = torch.from_numpy(documents == document)
                changed = tokens.clone()
                changed[row, inside & (tokens[row] != EOD)] += 1
                changed.clamp_(max=EOD - 1).masked_fill_(tokens == EOD, EOD)
                moved = (model({**batch, "tokens": changed}, allowed) != before).any(-1)
                changes += int(moved[row, inside].any())
                moved[row, inside] = False
                leaks += int(moved.any())
    assert changes > 16, "the change must show in its own document"
    if kind == "nothing":
        assert leaks > 8, "without boundaries documents must see each other, or this shows nothing"
    else:
        assert leaks == 0
