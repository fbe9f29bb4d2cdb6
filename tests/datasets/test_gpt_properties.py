"""`get_batch` against a slow twin that goes token by token, over all options."""

import tempfile
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.datasets import ArraySource, GPTDataset, GPTDatasetConfig
from coredata.formats import IndexedDataset, IndexedDatasetBuilder
from coredata.indices import Split

EOD, PAD = 1, 2


@dataclass
class Ids:
    """A tokenizer as far as samples are concerned."""

    pad: int | None
    eod: int = EOD
    eos: int = EOD
    vocab_size: int = 9

    @property
    def unique_identifiers(self):
        return {"class": "Ids"}


def slow_sample(dataset: GPTDataset, k: int) -> dict[str, Any]:
    """Sample k, one token at a time."""
    config = dataset.config
    size, extra = config.sequence_length, int(config.add_extra_token_to_sequence)
    pad = -1 if config.tokenizer.pad is None else config.tokenizer.pad
    if pad == EOD and not config.allow_ambiguous_pad_tokens:
        pad = -1
    row = int(dataset.shuffle_index[k])
    position, offset = (int(value) for value in dataset.sample_index[row])
    last, end = (int(value) for value in dataset.sample_index[row + 1])
    text, starts = [], []
    while position < last or (position == last and offset < end + extra):
        document = dataset.dataset[int(dataset.document_index[position])]
        if offset < len(document):
            starts.append(len(text))
        stop = end + extra if position == last else len(document)
        text += [int(token) for token in document[offset:stop]]
        position, offset = position + 1, 0
    real = len(text)
    text += [pad] * (size + 1 - real)
    fields: dict[str, list[Any]] = {
        name: [] for name in ("tokens", "labels", "loss_mask", "position_ids")
    }
    visible_from, since_eod, seen = 0, 0, []
    for i in range(size):
        token, label = text[i], text[i + 1]
        fields["tokens"].append(0 if token == pad else token)
        fields["labels"].append(0 if label == pad else label)
        lossless = label == pad or (config.eod_mask_loss and token == EOD)
        fields["loss_mask"].append(0.0 if lossless else 1.0)
        fields["position_ids"].append(i - since_eod)
        seen.append([not visible_from <= key <= i for key in range(size)])
        if token == EOD and config.reset_position_ids:
            since_eod = i + 1
        if token == EOD and config.reset_attention_mask:
            visible_from = i + 1
    starts = [start for start in starts if start == 0 or start < real - extra]
    document_of = [sum(start <= i for start in starts) for i in range(size)]
    if config.inter_document_masking:
        cu_seqlens = starts + [size] * (size + 1 - len(starts))
        fields["position_ids"] = [i - starts[document_of[i] - 1] for i in range(size)]
        fields["cu_seqlens"] = cu_seqlens
        fields["max_seqlen"] = max(np.diff(cu_seqlens))
    elif config.create_attention_mask:
        fields["attention_mask"] = [seen]
    if config.segment_ids:
        fields["segment_ids"] = [document_of[i] if i < real else 0 for i in range(size)]
    return fields


flags = st.fixed_dictionaries(
    {
        name: st.booleans()
        for name in (
            "add_extra_token_to_sequence",
            "drop_last_partial_validation_sequence",
            "eod_mask_loss",
            "reset_position_ids",
            "reset_attention_mask",
            "create_attention_mask",
            "inter_document_masking",
            "segment_ids",
            "allow_ambiguous_pad_tokens",
        )
    }
)


@st.composite
def settings_of_datasets(draw):
    lengths = draw(st.lists(st.integers(0, 2) | st.integers(0, 9), min_size=1, max_size=8))
    documents = draw(st.lists(st.sampled_from(range(len(lengths))), min_size=1, unique=True))
    exposed = sum(lengths[document] for document in documents)
    return {
        "tokens": np.array(
            draw(st.lists(st.integers(0, 8), min_size=sum(lengths), max_size=sum(lengths))),
            draw(st.sampled_from([np.uint16, np.int32, np.int64])),
        ),
        "lengths": np.array(lengths, np.int32),
        "documents": np.array(documents, np.int32),
        "num_samples": draw(st.none() | st.integers(1, 20)) if exposed else None,
        "split": draw(st.sampled_from([Split.train, Split.valid])),
        "options": {
            "random_seed": draw(st.integers(0, 2**32 - 1)),
            "sequence_length": draw(st.integers(1, 12)),
            "tokenizer": Ids(pad=draw(st.sampled_from([None, PAD, EOD]))),
            "output_dtype": draw(st.sampled_from(["int64", "int32"])),
            **draw(flags),
        },
    }


def build(drawn, source=None) -> GPTDataset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return GPTDataset(
            source or ArraySource(drawn["tokens"], drawn["lengths"]),
            None,
            drawn["documents"],
            drawn["num_samples"],
            drawn["split"],
            GPTDatasetConfig(**drawn["options"]),
        )


@settings(max_examples=150, deadline=None)
@given(drawn=settings_of_datasets(), data=st.data())
def test_batch_equals_slow_twin(drawn, data):
    dataset = build(drawn)
    if len(dataset) == 0:
        with pytest.raises(IndexError, match="which has no samples"):
            dataset.get_batch([0])
        return
    wanted = data.draw(st.lists(st.integers(-1, len(dataset) - 1), min_size=1, max_size=6))
    batch = dataset.get_batch(np.array(wanted))
    for row, k in enumerate(wanted):
        expected = slow_sample(dataset, max(k, 0))
        if k == -1:
            expected["loss_mask"] = [0.0] * dataset.config.sequence_length
        assert batch.keys() == expected.keys()
        alone = dataset[None if k == -1 else k]
        for name, values in expected.items():
            np.testing.assert_array_equal(batch[name][row], values, err_msg=name)
            np.testing.assert_array_equal(alone[name], values, err_msg=name)


@settings(max_examples=30, deadline=None)
@given(drawn=settings_of_datasets())
def test_every_number_of_samples(drawn):
    """Batches of any size, and none at all."""
    dataset = build(drawn)
    for size in (0, min(1, len(dataset)), len(dataset)):
        batch = dataset.get_batch(np.arange(size))
        assert {len(values) for values in batch.values()} == {size}


@settings(max_examples=50, deadline=None)
@given(drawn=settings_of_datasets(), mmap=st.booleans(), data=st.data())
def test_files_give_what_arrays_give(drawn, mmap, data):
    expected = build(drawn)
    with tempfile.TemporaryDirectory() as directory:
        prefix = f"{directory}/corpus"
        with IndexedDatasetBuilder(prefix, dtype=drawn["tokens"].dtype) as builder:
            builder.add_documents(drawn["tokens"], drawn["lengths"].astype(np.int64))
        found = build(drawn, IndexedDataset(prefix, mmap=mmap))
        numbers = st.integers(-1, max(len(expected) - 1, 0))
        indices = data.draw(st.lists(numbers, max_size=6 if len(expected) else 0))
        batches = [dataset.get_batch(indices) for dataset in (expected, found)]
    assert batches[0].keys() == batches[1].keys()
    for field, values in batches[0].items():
        assert values.dtype == batches[1][field].dtype
        np.testing.assert_array_equal(values, batches[1][field])
