"""Forward and backward traces, held to what is really read: every token tells where it is from."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from coredata.datasets import (
    ArraySource,
    BlendedDataset,
    GPTDataset,
    GPTDatasetConfig,
    ItemList,
    SFTDataset,
    SFTDatasetConfig,
    WithoutSamples,
    samples_of_document,
    steps_of_document,
    trace_samples,
    trace_step,
)
from coredata.datasets.trace_search import count_up_to, fill_places, places_of
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split
from coredata.sampling import (
    BatchSizeRampUp,
    GlobalBatchSampler,
    MegatronPretrainingRandomSampler,
    TrainingSteps,
)
from coredata.testing.strategies import GPTSettings, corpora, gpt_settings
from coredata.text import ByteConversationTokenizer, NullTokenizer

FIRST = 1000
STEP = 1_000_000


@dataclass
class Corpus:
    """A dataset, and for each of its token ids the document and offset it stands for."""

    dataset: GPTDataset
    places: dict


def made(lengths, settings, number=0, path=None, exposed=None):
    """GPT samples of documents of these lengths, whose tokens are all different."""
    begin = FIRST + number * STEP
    tokens = np.arange(begin, begin + sum(lengths))
    places, at = {}, begin
    for document, length in enumerate(lengths):
        for offset in range(length):
            places[at] = (document, offset)
            at += 1
    config = GPTDatasetConfig(
        random_seed=settings.random_seed,
        sequence_length=settings.sequence_length,
        split="1",
        blend=(["x"], None),
        tokenizer=NullTokenizer(2**31 - 2),
        add_extra_token_to_sequence=settings.add_extra_token,
        drop_last_partial_validation_sequence=settings.drop_last_partial_sequence,
    )
    source = ArraySource(tokens, np.array(lengths))
    documents = np.arange(len(lengths), dtype=np.int32) if exposed is None else exposed
    dataset = GPTDataset(source, path, documents, settings.num_samples, Split.valid, config)
    return Corpus(dataset, places)


def ids(item, extra):
    """The ids that a sample was made of."""
    tokens = item["tokens"].tolist()
    if extra:
        tokens.append(int(item["labels"][-1]))
    return [token for token in tokens if token >= FIRST]


def runs(found):
    """[(key, offset)] in reading order -> [(key, first offset, length)]."""
    parts = []
    for key, offset in found:
        if parts and parts[-1][0] == key and sum(parts[-1][1:]) == offset:
            parts[-1] = (key, parts[-1][1], parts[-1][2] + 1)
        else:
            parts.append((key, offset, 1))
    return parts


def merged(parts):
    """Parts that continue each other as one: a document may follow itself in the next epoch."""
    return runs([(key, first + k) for key, first, length in parts for k in range(length)])


documents = corpora(max_documents=8, max_length=12).map(lambda docs: [len(d) for d in docs])


@examples(max_examples=60)
@given(documents, gpt_settings(max_sequence_length=8, max_samples=40), st.data())
def test_samples_and_documents_of_one_file(lengths, settings, data):
    count = data.draw(st.integers(1, len(lengths)))
    exposed = np.arange(len(lengths) - count, len(lengths), dtype=np.int32)
    assume(sum(lengths[len(lengths) - count :]))
    corpus = made(lengths, settings, exposed=exposed)
    dataset = corpus.dataset
    read = [
        [corpus.places[i] for i in ids(dataset[k], settings.add_extra_token)]
        for k in range(len(dataset))
    ]
    trace = trace_samples(dataset, np.arange(len(dataset)))
    assert (np.diff(trace.samples) >= 0).all()
    parts = trace.parts()
    for k, found in enumerate(read):
        here = [(p.document, p.offset, p.length) for p in parts if p.sample == k]
        assert merged(here) == runs(found)
    for document in range(len(lengths)):
        expected = [k for k, found in enumerate(read) if any(d == document for d, _ in found)]
        assert samples_of_document(dataset, document).tolist() == expected


@pytest.mark.slow
@examples(max_examples=30)
@example(  # a sample twice in one step
    files=[[0, 1], [5, 1], [0, 0, 3, 0, 0, 0, 0]],
    settings=GPTSettings(
        sequence_length=1,
        num_samples=1,
        random_seed=0,
        add_extra_token=False,
        drop_last_partial_sequence=False,
    ),
    weights=[1.0, 1.0, 1.0],
    skipped=set(),
    kind="cyclic",
    batch=4,
)
@given(
    st.lists(documents, min_size=2, max_size=3),
    gpt_settings(max_sequence_length=6, max_samples=30),
    st.lists(st.sampled_from([1.0, 2.0, 5.0, 0.3]), min_size=3, max_size=3),
    st.sets(st.integers(0, 19), max_size=8),
    st.sampled_from(["single", "ramp-up", "cyclic"]),
    st.integers(1, 4),
)
def test_steps_of_blends_both_ways(files, settings, weights, skipped, kind, batch):
    settings = type(settings)(**{**vars(settings), "num_samples": 40})
    corpora_ = [made(lengths, settings, i, f"file{i}") for i, lengths in enumerate(files)]
    config = corpora_[0].dataset.config
    blend = BlendedDataset([c.dataset for c in corpora_], weights[: len(files)], 20, config)
    view = WithoutSamples(blend, sorted(skipped))
    if kind == "cyclic":
        sampler = MegatronPretrainingRandomSampler(len(view), 0, 1, 0, 2, False)
        steps = TrainingSteps(sampler, 2 * batch)
    else:
        sampler = GlobalBatchSampler(len(view), 0, 1)
        size = batch if kind == "single" else BatchSizeRampUp(1, 1, 6, 1 + batch)
        steps = TrainingSteps(sampler, size)
    count = 9 if kind == "cyclic" else len(steps)
    seen = []
    for step in range(count):
        for sample in steps.samples(step).tolist():
            item = view[sample]
            places = corpora_[int(item["dataset_id"])].places
            key = int(item["dataset_id"])
            found = [((key, *places[i][:1]), places[i][1]) for i in ids(item, config_extra(config))]
            seen.append((step, sample, found))
    for step in range(count):
        expected = [(sample, runs(found)) for s, sample, found in seen if s == step]
        parts = trace_step(view, steps, step).parts()
        for sample, found in expected:
            here = [p for p in parts if p.sample == sample]
            times = sum(sample == other for other, _ in expected)  # more, where epochs meet
            assert here == here[: len(here) // times] * times
            del here[len(here) // times :]
            assert {p.path for p in here} == {f"file{p.dataset}" for p in here}
            assert merged([((p.dataset, p.document), p.offset, p.length) for p in here]) == found
        assert {p.sample for p in parts} == {sample for sample, found in expected if found}
    for number, lengths in enumerate(files):
        for document in range(len(lengths)):
            sightings = steps_of_document(view, steps, document, f"file{number}", count)
            pairs = list(zip(sightings.steps.tolist(), sightings.samples.tolist(), strict=True))
            expected = [
                (step, sample)
                for step, sample, found in seen
                if any(key == (number, document) for key, _ in found)
            ]
            assert sorted(pairs) == sorted(expected)


def config_extra(config):
    return config.add_extra_token_to_sequence


def small(**options):
    settings = {
        "sequence_length": 4,
        "num_samples": None,
        "random_seed": 1,
        "add_extra_token": True,
        "drop_last_partial_sequence": True,
    }
    return type("Settings", (), {**settings, **options})()


def test_documents_of_several_sequences(tmp_path):
    prefix = str(tmp_path / "corpus")
    with IndexedDatasetBuilder(prefix, np.int32) as builder:
        builder.add_document(range(5), [2, 3])
        builder.add_document(range(6), [6])
        builder.finalize()
    config = made([1], small()).dataset.config
    source = GPTDataset.build_low_level_dataset(prefix, config)
    dataset = GPTDataset(source, prefix, np.arange(3, dtype=np.int32), None, Split.train, config)
    parts = trace_samples(dataset, np.arange(len(dataset))).parts()
    assert {(p.sequence, p.document) for p in parts} == {(0, 0), (1, 0), (2, 1)}
    assert {p.path for p in parts} == {prefix}
    whole = {p.sample for p in parts if p.document == 0}
    assert samples_of_document(dataset, 0).tolist() == sorted(whole)
    assert samples_of_document(dataset, 0, prefix).tolist() == sorted(whole)


def test_rows_of_conversations():
    tokenizer = ByteConversationTokenizer()
    config = SFTDatasetConfig(
        random_seed=1, sequence_length=64, blend=(["x"], None), split="1", tokenizer=tokenizer
    )
    rows = ItemList([[{"role": "user", "content": str(k)}] for k in range(5)])
    dataset = SFTDataset(rows, "chats", np.arange(1, 4), 8, Split.train, config)
    parts = trace_samples(dataset, np.array([0, 2, 3, 7])).parts()
    assert [p.document for p in parts] == [1, 3, 1, 2]
    assert {(p.path, p.offset, p.length, p.dataset) for p in parts} == {("chats", 0, -1, None)}
    assert samples_of_document(dataset, 2).tolist() == [1, 4, 7]
    assert samples_of_document(dataset, 4).tolist() == []


def test_what_there_is_not():
    dataset = made([9, 9], small(), path="here").dataset
    text = rf"sample {len(dataset)} was asked of {len(dataset)} samples; they are numbered 0 to"
    with pytest.raises(IndexError, match=text):
        trace_samples(dataset, np.array([len(dataset)]))
    with pytest.raises(IndexError, match=r"document 2 was asked of here, which has 2, numbered 0"):
        samples_of_document(dataset, 2)
    with pytest.raises(ValueError, match=r"path: there is not what is read here, which is here"):
        samples_of_document(dataset, 1, "there")
    blend = BlendedDataset([dataset, dataset], [1, 1], 2, dataset.config)
    with pytest.raises(ValueError, match=r"path: there is not in the blend, which reads here"):
        samples_of_document(blend, 1, "there")
    with pytest.raises(IndexError, match=r"document 2 was asked of here"):
        samples_of_document(blend, 2)
    with pytest.raises(TypeError, match=r"a list cannot be traced; give a GPTDataset"):
        trace_samples([1, 2], np.array([1]))


def test_of_no_samples():
    dataset = made([9, 9], small()).dataset
    none = np.empty(0, np.int64)
    assert len(trace_samples(dataset, none)) == 0
    assert trace_samples(BlendedDataset([dataset], [1], 3, dataset.config), none).parts() == []


@given(
    st.lists(st.integers(0, 9)), st.lists(st.integers(-1, 10)), st.sampled_from(["i4", "u4", "i8"])
)
def test_binary_search_equals_numpy(values, keys, kind):
    array = np.sort(np.array(values, kind))
    wide = np.array(keys, np.int64)
    expected = np.searchsorted(array.astype(np.int64), wide, "right")
    assert count_up_to(array, wide).tolist() == expected.tolist()
    strided = np.stack([array, array], axis=1)[:, 0]
    assert count_up_to(strided, wide).tolist() == expected.tolist()


@given(
    st.lists(st.sampled_from([0, 1, 40_000, 65_536, 65_537, 131_072])),
    st.lists(st.sampled_from([0, 1, 40_000, 65_536, 65_537, 131_072])),
    st.sampled_from([np.int32, np.uint32, np.int64]),
)
def test_places_equal_numpy(values, wanted, dtype):
    array = np.array(values, dtype)
    found = places_of(array, np.array(wanted, np.int64))
    assert found.tolist() == np.flatnonzero(np.isin(array, wanted)).tolist()


def test_places_without_room_are_counted():
    marks = np.ones(1 << 16, np.bool_)
    room = np.empty(1, np.int64)
    assert fill_places(np.arange(5), np.array([1, 3]), marks, room) == 2
    assert room.tolist() == [1]
