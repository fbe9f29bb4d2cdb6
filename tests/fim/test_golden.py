"""The reference's samples bit for bit, from the pure functions and one random stream."""

import json
from importlib.resources import files
from itertools import repeat

import numpy as np
import pytest

from coredata.fim import FIMOptions, Infilling
from coredata.indices import IndexedOrder, build_gpt_indices
from coredata.text import ByteTokenizer

GOLDEN = files("coredata.testing") / "golden" / "fim"
CASES = sorted(p.name[:-5] for p in GOLDEN.iterdir() if p.name.endswith(".json"))


def read(name):
    settings = json.loads((GOLDEN / f"{name}.json").read_text())
    with (GOLDEN / f"{name}.npz").open("rb") as file:
        return settings, dict(np.load(file, allow_pickle=False))


def gathered(settings, arrays):
    """The text (one token more than the sequence length) of every sample read."""
    lengths = arrays["doc_lengths"]
    starts = np.cumsum(lengths) - lengths
    size = settings["sequence_length"]
    indices = build_gpt_indices(
        lengths, np.arange(len(lengths)), settings["num_samples"], size, settings["random_seed"]
    )
    samples = np.array(settings["access_order"], np.int64)
    spans = IndexedOrder(indices, lengths, size).spans(samples)
    begins = starts[spans.sequences] + spans.offsets
    parts = [arrays["flat_tokens"][b : b + n] for b, n in zip(begins, spans.lengths, strict=True)]
    return [
        np.concatenate(parts[a:b])
        for a, b in zip(spans.row_splits[:-1], spans.row_splits[1:], strict=True)
    ]


def test_golden_cases_are_there():
    assert len(CASES) == 8


@pytest.mark.parametrize("batch_size", [1, 7, 100])
@pytest.mark.parametrize("name", CASES)
def test_samples_match_the_reference(name, batch_size):
    settings, arrays = read(name)
    infilling = Infilling.of(FIMOptions(**settings["config"]), ByteTokenizer())
    assert dict(infilling.tokenizer.special_tokens) == settings["special"]
    stream = np.random.RandomState(settings["random_seed"])
    samples = gathered(settings, arrays)
    out = []
    for start in range(0, len(samples), batch_size):
        out += infilling.batch(samples[start : start + batch_size], repeat(stream))
    text = np.stack(out)
    assert text.dtype == arrays["tokens"].dtype
    np.testing.assert_array_equal(text[:, :-1], arrays["tokens"])
    np.testing.assert_array_equal(text[:, 1:], arrays["labels"])
