"""The reference's BERT and T5 datasets beside ours, on random corpora and settings.

The reference needs a process group to build a sentence map; ours needs none.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.datasets import (
    BERTMaskedWordPieceDataset,
    BERTMaskedWordPieceDatasetConfig,
    BlendedMegatronDatasetBuilder,
    IndexCacheWarning,
    T5MaskedWordPieceDataset,
    T5MaskedWordPieceDatasetConfig,
)
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import SentenceSettings, Split, build_sentence_map
from coredata.masking import t5_attention_masks
from coredata.testing import assert_same_batch
from coredata.testing.golden_masked import MaskedTokenizer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from megatron.core.datasets import bert_dataset, helpers, t5_dataset
    from megatron.core.datasets.blended_megatron_dataset_builder import (
        BlendedMegatronDatasetBuilder as ReferenceBuilder,
    )
    from megatron.core.datasets.utils import Split as ReferenceSplit

OURS = {
    "BERT": (BERTMaskedWordPieceDataset, BERTMaskedWordPieceDatasetConfig),
    "T5": (T5MaskedWordPieceDataset, T5MaskedWordPieceDatasetConfig),
}
THEIRS = {
    "BERT": (
        bert_dataset.BERTMaskedWordPieceDataset,
        bert_dataset.BERTMaskedWordPieceDatasetConfig,
    ),
    "T5": (t5_dataset.T5MaskedWordPieceDataset, t5_dataset.T5MaskedWordPieceDatasetConfig),
}
VOCABULARY = {number: f"{'##' if number % 3 == 0 else ''}w{number}" for number in range(40)}


@pytest.fixture(scope="module", autouse=True)
def process_group():
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def a_tokenizer(pad=0):
    ids = {"cls": 2, "sep": 3, "mask": 4, "bos": 5, "eos": 6, "pad": pad}
    return MaskedTokenizer(VOCABULARY, **ids, additional_special_tokens_ids=list(range(100, 200)))


TOKENIZERS = [a_tokenizer(pad) for pad in (0, 0, 6, -1, 8)]


def write(prefix, documents, dtype=np.uint16):
    with IndexedDatasetBuilder(prefix, dtype) as builder:
        for sentences in documents:
            for sentence in sentences:
                builder.add_item(np.array(sentence, np.int64))
            builder.end_document()
    return str(prefix)


def masking(model, **changes):
    own = {"classification_head": True} if model == "BERT" else {"sequence_length_decoder": 160}
    return {
        "random_seed": 1234,
        "sequence_length": 40,
        "tokenizer": TOKENIZERS[0],
        "masking_probability": 0.15,
        "short_sequence_probability": 0.1,
        "masking_max_ngram": 3,
        "masking_do_full_word": True,
        "masking_do_permutation": False,
        "masking_use_longer_ngrams": False,
        "masking_use_geometric_distribution": False,
        **own,
        **changes,
    }


def build_both(model, prefix, documents, num_samples, options, split="train"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of pad ids that are others as well
        pair = []
        for (cls, config), splits in ((OURS[model], Split), (THEIRS[model], ReferenceSplit)):
            settings = config(blend=([prefix], None), split="1,1,1", **options)
            source = cls.build_low_level_dataset(prefix, settings)
            pair.append(cls(source, prefix, documents, num_samples, splits[split], settings))
        return pair


def assert_identical(ours, theirs):
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def assert_same_dataset(ours, theirs):
    assert len(ours) == len(theirs)
    assert_identical(ours.sample_index, np.asarray(theirs.sample_index))
    batch = ours.get_batch(np.arange(len(ours)))
    for k in range(len(theirs)):
        expected = {name: np.asarray(value) for name, value in theirs[k].items()}
        sample = {name: values[k] for name, values in batch.items()}
        assert_same_batch(sample, expected, f"sample {k}")


TOKEN = st.integers(7, 39) | st.sampled_from([9, 12, 15]) | st.integers(0, 39)
SENTENCE = st.lists(TOKEN, max_size=12) | st.just([8, 9] * 257)
DOCUMENT = st.lists(st.lists(TOKEN, max_size=12), max_size=7) | st.lists(SENTENCE, max_size=4)


@st.composite
def cases(draw):
    model = draw(st.sampled_from(["BERT", "T5"]))
    geometric = draw(st.booleans())
    options = masking(
        model,
        random_seed=draw(st.integers(1, 2**31 - 2)),
        sequence_length=draw(st.integers(5, 60)),
        tokenizer=draw(st.sampled_from(TOKENIZERS)),
        masking_probability=draw(st.sampled_from([0.15, 0.5]) | st.floats(0.01, 0.9)),
        short_sequence_probability=draw(st.sampled_from([0, 0.1, 0.4, 1]) | st.floats(1e-3, 1)),
        masking_max_ngram=draw(st.integers(1, 12)),
        masking_do_full_word=draw(st.booleans()),
        masking_use_longer_ngrams=draw(st.booleans()),
        masking_use_geometric_distribution=geometric,
    )
    if model == "BERT":
        options["classification_head"] = draw(st.booleans())
    # One document qualifies: where none does, the reference does not end.
    documents = [*draw(st.lists(DOCUMENT, max_size=6)), [[7, 8], [10, 9]]]
    first = draw(st.integers(0, len(documents) - 1))
    return model, documents, first, draw(st.integers(1, 25)), options


@pytest.mark.slow
@settings(max_examples=150)
@given(cases())
def test_maps_and_samples(case):
    model, documents, first, num_samples, options = case
    with tempfile.TemporaryDirectory() as directory:
        prefix = write(f"{directory}/corpus", documents)
        options["path_to_cache"] = f"{directory}/theirs"
        exposed = np.arange(first, len(documents), dtype=np.int32)
        ours, theirs = build_both(model, prefix, exposed, num_samples, options)
        assert_same_dataset(ours, theirs)


@pytest.mark.parametrize("min_sentences", [1, 2])
@pytest.mark.parametrize("probability", [0, 0.1, 0.15, 1])
def test_a_larger_map(probability, min_sentences):
    random = np.random.default_rng(3)
    per_document = random.integers(0, 30, 20_000)
    lengths = random.integers(0, 60, per_document.sum()).astype(np.int32)
    lengths[::5000] = 513
    boundaries = np.concatenate([[0], np.cumsum(per_document)])
    options = SentenceSettings(126, probability, min_sentences, 99)
    found = build_sentence_map(boundaries, lengths, np.arange(20_000), 600_000, options)
    expected = helpers.build_mapping(
        boundaries, lengths, 2**31 - 2, 600_000, 126, probability, 99, False, min_sentences
    )
    assert_identical(found, expected)


def random_documents(seed, count=60):
    random = np.random.default_rng(seed)
    return [
        [random.integers(7, 40, random.integers(1, 14)).tolist() for _ in range(sentences)]
        for sentences in random.integers(0, 9, count)
    ]


@pytest.mark.parametrize("model", ["BERT", "T5"])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_caches_are_read_both_ways(model, writer, tmp_path, monkeypatch):
    prefix = write(tmp_path / "corpus", random_documents(1))
    options = masking(model, path_to_cache=str(tmp_path / "cache"))
    exposed = np.arange(60, dtype=np.int32)
    built = {}
    for who in (writer, "theirs" if writer == "ours" else "ours"):
        table, splits = (OURS, Split) if who == "ours" else (THEIRS, ReferenceSplit)
        dataset_class, config_class = table[model]
        settings = config_class(blend=([prefix], None), split="1,1,1", **options)
        source = dataset_class.build_low_level_dataset(prefix, settings)
        made = dataset_class(source, prefix, exposed, 100, splits.train, settings)
        built[who] = made
        # From here on nothing is built any more.
        monkeypatch.setattr(helpers, "build_mapping", None)
        monkeypatch.setattr("coredata.datasets.masked_index.build_sentence_map", None)
    assert_same_dataset(built["ours"], built["theirs"])
    names = sorted(path.name for path in (tmp_path / "cache").iterdir())
    stem = f"{built['ours'].unique_description_hash}-{model}MaskedWordPieceDataset-"
    expected = [f"{stem}description.txt", f"{stem}sample_index.npy"]
    additions = ("checksums.json", "arrays.pack")
    assert [name for name in names if not name.endswith(additions)] == expected
    assert len(names) == (4 if writer == "ours" else 2)


def test_a_cache_of_the_reference_from_other_data_is_built_again(tmp_path):
    options = masking("BERT", path_to_cache=str(tmp_path / "cache"))
    exposed = np.arange(60, dtype=np.int32)
    prefix = write(tmp_path / "corpus", random_documents(1))
    build_both("BERT", prefix, exposed, 100, {**options, "path_to_cache": str(tmp_path / "c")})
    cls, config = THEIRS["BERT"]
    settings = config(blend=([prefix], None), split="1,1,1", **options)
    cls(
        cls.build_low_level_dataset(prefix, settings),
        prefix,
        exposed,
        100,
        ReferenceSplit.train,
        settings,
    )
    write(tmp_path / "corpus", random_documents(2))
    cls, config = OURS["BERT"]
    settings = config(blend=([prefix], None), split="1,1,1", **options)
    source = cls.build_low_level_dataset(prefix, settings)
    with pytest.warns(IndexCacheWarning, match="made from other data or settings"):
        rebuilt = cls(source, prefix, exposed, 100, Split.train, settings)
    fresh = cls(source, None, exposed, 100, Split.train, settings)
    assert_identical(rebuilt.sample_index, fresh.sample_index)


@pytest.mark.parametrize("model", ["BERT", "T5"])
@pytest.mark.parametrize("longer", [False, True])
def test_permutation(model, longer, tmp_path, monkeypatch):
    """The reference draws from numpy's global generator; made to draw from the sample's, it
    gives what ours gives."""
    current = []

    class Recorded(np.random.RandomState):
        def __init__(self, seed):
            super().__init__(seed)
            current[:] = [self]

    def choice(*args, **options):
        return current[0].choice(*args, **options)

    monkeypatch.setattr(np.random, "RandomState", Recorded)
    monkeypatch.setattr(np.random, "choice", choice)
    prefix = write(tmp_path / "corpus", random_documents(4))
    changes = {"masking_do_permutation": True, "masking_use_longer_ngrams": longer}
    options = masking(model, path_to_cache=str(tmp_path / "cache"), **changes)
    ours, theirs = build_both(model, prefix, np.arange(60, dtype=np.int32), 100, options)
    assert_same_dataset(ours, theirs)
    monkeypatch.undo()
    differ = [
        not np.array_equal(ours[k][f], theirs[k][f])
        for k in range(50)
        for f in ("text" if model == "BERT" else "text_enc",)
    ]
    assert any(differ)


def test_attention_masks(tmp_path):
    prefix = write(tmp_path / "corpus", random_documents(5))
    options = masking("T5", path_to_cache=str(tmp_path / "cache"))
    ours, _ = build_both("T5", prefix, np.arange(60, dtype=np.int32), 50, options)
    batch = ours.get_batch(np.arange(40))
    tensors = [torch.from_numpy(batch[name]) for name in ("text_enc", "text_dec")]
    masks = [torch.from_numpy(batch[name]) for name in ("enc_mask", "dec_mask")]
    expected = THEIRS["T5"][0].config_attention_mask(*tensors, *masks, use_local=True)
    found = t5_attention_masks(batch["enc_mask"], batch["dec_mask"])
    for mine, theirs in zip(
        (found.encoder, found.decoder, found.encoder_decoder), expected, strict=True
    ):
        assert_identical(mine, theirs.numpy())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["BERT", "T5"])
def test_builder_and_blends(model, tmp_path):
    prefixes = [
        write(tmp_path / name, random_documents(seed, 80)) for seed, name in enumerate("ab")
    ]
    options = masking(model, path_to_cache=None)
    built = []
    for table, builder, cache in (
        (OURS, BlendedMegatronDatasetBuilder, "ours"),
        (THEIRS, ReferenceBuilder, "theirs"),
    ):
        cls, config = table[model]
        options["path_to_cache"] = str(tmp_path / cache)
        settings = config(blend=(prefixes, [0.7, 0.3]), split="70,20,10", **options)
        arguments = [[150, 40, 10], lambda: True, settings]
        built.append(builder(cls, *arguments).build())
    for ours, theirs in zip(*built, strict=True):
        assert len(ours) == len(theirs)
        batch = ours.get_batch(np.arange(len(ours)))
        for k in range(len(ours)):
            expected = {name: np.asarray(value) for name, value in theirs[k].items()}
            # The reference's blend adds which dataset a sample is from.
            expected.pop("dataset_id", None)
            sample = {name: values[k] for name, values in batch.items() if name in expected}
            assert_same_batch(sample, expected, f"sample {k}")
    cached = {
        cache: sorted(
            p.name
            for p in Path(tmp_path / cache).iterdir()
            if p.name.endswith("PieceDataset-sample_index.npy")
        )
        for cache in ("ours", "theirs")
    }
    assert cached["ours"] == cached["theirs"]
    assert len(cached["ours"]) == 6
