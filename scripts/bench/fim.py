"""Samples for infilling, beside the reference's method: one sample, one piece, one text at a time.

The other side gathers a sample, decodes each piece that is drawn, cuts its text, and tokenises the
three parts one by one, with the same tokenizer and the same stream of random draws.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer

from coredata import IndexedDataset, IndexedDatasetBuilder, Split
from coredata.datasets import GPTFIMDataset, GPTFIMDatasetConfig
from coredata.text import TokenizerJson, demo_tokenizer
from scripts.bench import assets
from scripts.bench.harness import Row, compare

BATCH, SEQUENCE_LENGTH, SEED = 8, 2048, 7
MARKS = {
    "prefix": "<fim_prefix>",
    "middle": "<fim_middle>",
    "suffix": "<fim_suffix>",
    "pad": "<fim_pad>",
    "eod": "<|endoftext|>",
}


def rows(full: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        tokenizer = assets.deepseek() if full else demo_tokenizer()
        return [row(directory, with_marks(directory, tokenizer), 64 if full else 8)]


def with_marks(directory: Path, tokenizer: TokenizerJson) -> TokenizerJson:
    native = Tokenizer.from_str(tokenizer.serialized())
    native.add_special_tokens([AddedToken(mark, normalized=False) for mark in MARKS.values()])
    path = directory / "tokenizer.json"
    native.save(str(path))
    return TokenizerJson(str(path), eod=MARKS["eod"], pad=MARKS["pad"])


def row(directory: Path, tokenizer: TokenizerJson, batches: int) -> Row:
    prefix = str(directory / "corpus")
    write(prefix, tokenizer, batches * BATCH * SEQUENCE_LENGTH)
    config = GPTFIMDatasetConfig(
        random_seed=SEED,
        sequence_length=SEQUENCE_LENGTH,
        split="1",
        blend=([prefix], None),
        tokenizer=tokenizer,
        fim_rate=1.0,
        fim_spm_rate=0.5,
        randomness="stream",
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    source = IndexedDataset(prefix)
    exposed = np.arange(len(source), dtype=np.int32)

    def fresh() -> GPTFIMDataset:
        return GPTFIMDataset(source, prefix, exposed, batches * BATCH, Split.train, config)

    def ours() -> np.ndarray:
        dataset = fresh()
        numbers = np.arange(batches * BATCH).reshape(-1, BATCH)
        return np.concatenate([dataset.get_batch(batch)["tokens"] for batch in numbers])

    order = fresh().order

    def other() -> np.ndarray:
        stream = np.random.RandomState(SEED)
        permute = permutation(tokenizer, stream, config.fim_rate, config.fim_spm_rate)
        out = []
        for number in range(batches * BATCH):
            spans = order.spans(np.array([number]))
            parts = [
                source.get(int(s), int(o), int(n))
                for s, o, n in zip(spans.sequences, spans.offsets, spans.lengths, strict=True)
            ]
            out.append(permute(np.concatenate(parts).astype(np.int64))[:-1])
        return np.stack(out)

    what = (
        f"{batches * BATCH} samples of {SEQUENCE_LENGTH}, all pieces permuted, vocabulary "
        f"{tokenizer.vocab_size:,}, gigatoken"
    )
    return compare("FIM samples", ours, other, np.testing.assert_array_equal, what)


def permutation(
    tokenizer: TokenizerJson, stream: np.random.RandomState, rate: float, spm_rate: float
) -> Callable[[np.ndarray], np.ndarray]:
    ids = {role: tokenizer.token_id(mark) for role, mark in MARKS.items()}
    special = set(tokenizer.special_tokens_dict.values()) | set(ids.values())

    def piece(part: np.ndarray) -> list[Any]:
        if not stream.binomial(1, rate):
            return part.tolist()
        text = tokenizer.decode([token for token in part.tolist() if token not in special])
        first, second = sorted(stream.randint(0, len(text) + 1, size=2))
        cut = (text[:first], text[first:second], text[second:])
        before, middle, after = (tokenizer.encode(some) for some in cut)
        if stream.binomial(1, spm_rate):
            return [ids["prefix"], ids["suffix"], *after, ids["middle"], *before, *middle]
        return [ids["prefix"], *before, ids["suffix"], *after, ids["middle"], *middle]

    def permute(sample: np.ndarray) -> np.ndarray:
        out: list[Any] = []
        start = 0
        for end in np.flatnonzero(sample == ids["eod"]).tolist():
            if end > start:
                out += [*piece(sample[start:end]), ids["eod"]]
            start = end + 1
        out += piece(sample[start:])
        out += [ids["pad"]] * (len(sample) - len(out))
        return np.array(out[: len(sample)])

    return permute


def write(prefix: str, tokenizer: TokenizerJson, tokens: int) -> None:
    with IndexedDatasetBuilder(prefix, dtype=np.int32) as builder:
        written = 0
        for text in assets.library_texts():
            for start in range(0, len(text), 4000):
                ids = [*tokenizer.encode(text[start : start + 4000]), tokenizer.eod]
                builder.add_document(ids, [len(ids)])
                written += len(ids)
            if written > tokens:
                return
