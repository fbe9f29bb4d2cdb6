"""BERT and T5 datasets: the reference's vectors, the contract, splits, blends, what is pickled."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from coredata import BlendedMegatronDatasetBuilder, Split
from coredata.datasets import (
    BERTMaskedWordPieceDataset,
    BERTMaskedWordPieceDatasetConfig,
    MidLevelDataset,
    MidLevelDatasetClass,
    T5MaskedWordPieceDataset,
    T5MaskedWordPieceDatasetConfig,
)
from coredata.formats import IndexedDatasetBuilder
from coredata.masking import t5_attention_masks
from coredata.testing import (
    assert_dataset_contract,
    assert_same_batch,
    golden_cases,
)
from coredata.testing.checks_masked import (
    assert_sentences_once,
    masked_datasets,
    random_sentences,
)
from coredata.testing.golden_masked import (
    CORPUS,
    assert_golden_masked,
    golden_masked_tokenizer,
    write_golden_corpus,
)

CASES = golden_cases("masked", without=(CORPUS,))
TOKENIZER = golden_masked_tokenizer()
BOTH = pytest.mark.parametrize("which", [0, 1], ids=["BERT", "T5"])


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return random_sentences(tmp_path_factory.mktemp("corpus") / "corpus", 3)


def test_golden_cases_are_there():
    assert len(CASES) == 7


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case, tmp_path):
    assert_golden_masked(case, write_golden_corpus(tmp_path / "corpus"))


@BOTH
def test_contract(which, prefix):
    dataset = masked_datasets(prefix, 5, 100)[which]
    assert isinstance(dataset, MidLevelDataset)
    assert isinstance(type(dataset), MidLevelDatasetClass)
    assert_dataset_contract(dataset)


def test_contract_with_attention_masks(prefix):
    dataset = masked_datasets(prefix, 5, 100)[1]
    config = replace(dataset.config, create_attention_mask=True)
    dense = T5MaskedWordPieceDataset(
        dataset.dataset, prefix, dataset.indices, 100, Split.train, config
    )
    assert_dataset_contract(dense)
    batch = dense.get_batch(np.arange(8))
    masks = t5_attention_masks(batch["enc_mask"], batch["dec_mask"])
    assert batch.pop("enc_attention_mask").shape == (8, 1, 64, 64)
    np.testing.assert_array_equal(batch.pop("dec_attention_mask"), masks.decoder)
    np.testing.assert_array_equal(batch.pop("enc_dec_attention_mask"), masks.encoder_decoder)
    assert_same_batch(batch, dataset.get_batch(np.arange(8)), "fields without dense masks")


@BOTH
def test_one_epoch(which, prefix):
    dataset = masked_datasets(prefix, 5, None)[which]
    assert_sentences_once(dataset)
    lengths = dataset.dataset.sequence_lengths
    counted = dataset.dataset.document_indices
    assert np.flatnonzero(np.diff(counted) == 0).size, "no empty document"
    assert (lengths > 512).any(), "no long sentence"


@BOTH
def test_samples_do_not_depend_on_how_many_there_are(which, prefix):
    """The map is shuffled as a whole, so that rows differ; the draws of a row do not."""
    short, long = (masked_datasets(prefix, 5, n)[which] for n in (10, 400))
    rows = {tuple(row): k for k, row in enumerate(long.sample_index.tolist())}
    assert len(short) < len(long)
    assert all(tuple(row) in rows for row in short.sample_index.tolist())


@BOTH
@pytest.mark.parametrize("weights", [None, [0.3, 0.7]])
def test_builder(which, weights, prefix, tmp_path):
    other = random_sentences(tmp_path / "other", 9, documents=90)
    made = masked_datasets(prefix, 5, 10)[which]
    config = replace(made.config, blend=([prefix, other], weights), split="60,30,10")
    sizes = (50, 20, 5) if weights else (None, None, None)
    train, valid, test = BlendedMegatronDatasetBuilder(type(made), sizes, config=config).build()
    for dataset, size in ((train, sizes[0]), (valid, sizes[1]), (test, sizes[2])):
        assert len(dataset) >= (size or 1)
        assert_dataset_contract(dataset)
        parts = dataset.datasets
        assert [part.dataset_path for part in parts] == [prefix, other]
    documents = [part.indices.tolist() for part in (d.datasets[1] for d in (train, valid, test))]
    assert documents == [list(range(54)), list(range(54, 81)), list(range(81, 90))]


@BOTH
def test_a_split_is_of_documents(which, prefix):
    made = masked_datasets(prefix, 5, None)[which]
    config = replace(made.config, split="1,1,0")
    train, valid, test = BlendedMegatronDatasetBuilder(
        type(made), (None, None, 0), config=config
    ).build()
    source = made.dataset
    middle = source.document_indices[30]
    assert train.sample_index[:, 1].max() <= middle <= valid.sample_index[:, 0].min()
    assert test is None


@BOTH
def test_pickles_are_small_where_a_cache_holds_the_map(which, prefix, tmp_path):
    options = {"path_to_cache": str(tmp_path)}
    dataset = masked_datasets(prefix, 5, 20_000, **options)[which]
    dataset.get_batch([0])
    bare = masked_datasets(prefix, 5, 20_000)[which]
    small, large = pickle.dumps(dataset), pickle.dumps(bare)
    assert len(small) < 10_000 < len(large)
    expected = dataset.get_batch(np.arange(5))
    for content in (small, large):
        assert_same_batch(pickle.loads(content).get_batch(np.arange(5)), expected, "a copy")


@BOTH
def test_the_map_is_built_when_first_needed(which, prefix, tmp_path):
    options = {"path_to_cache": str(tmp_path / "cache"), "defer_npy_index_mmap": True}
    dataset = masked_datasets(prefix, 5, 40, **options)[which]
    assert not (tmp_path / "cache").exists()
    assert len(pickle.loads(pickle.dumps(dataset))) == len(dataset)
    assert len(list((tmp_path / "cache").iterdir())) == 4


@BOTH
def test_fingerprints_tell_what_decides_samples(which, prefix):
    dataset = masked_datasets(prefix, 5, 40)[which]

    def of(**changes):
        config = replace(dataset.config, **changes)
        arguments = (dataset.dataset, prefix, dataset.indices, 40, Split.train, config)
        return type(dataset)(*arguments).fingerprint()

    own = dataset.fingerprint()
    assert own == of(path_to_cache=None)
    for changes in (
        {"random_seed": 6},
        {"masking_probability": 0.2},
        {"masking_max_ngram": 5},
        {"masking_do_full_word": False},
        {"short_sequence_probability": 0.2},
        {"masking_use_longer_ngrams": True},
        {"tokenizer": replace(TOKENIZER, pad=1)},
        {"tokenizer": replace(TOKENIZER, inv_vocab={**TOKENIZER.inv_vocab, 30: "##more"})},
    ):
        assert of(**changes) != own, changes


class Recording:
    """A source that notes which spans it is asked to fetch and to read."""

    def __init__(self, source, useful=True):
        self.source, self.useful = source, useful
        self.sequence_lengths = source.sequence_lengths
        self.document_indices = source.document_indices
        self.fetched, self.read = [], []

    def __len__(self):
        return len(self.source)

    def looks_ahead(self):
        return self.useful

    def prefetch(self, sequences, offsets, lengths):
        self.fetched += zip(sequences.tolist(), offsets.tolist(), lengths.tolist(), strict=True)

    def read_into(self, sequences, offsets, lengths, out, out_offsets):
        self.read += zip(sequences.tolist(), offsets.tolist(), lengths.tolist(), strict=True)
        self.source.read_into(sequences, offsets, lengths, out, out_offsets)

    def identity(self):
        return self.source.identity()


@BOTH
def test_samples_to_come_are_told_to_the_source(which, prefix):
    made = masked_datasets(prefix, 5, 60)[which]
    arguments = (prefix, made.indices, 60, Split.train, made.config)
    source = Recording(made.dataset)
    dataset = type(made)(source, *arguments)
    dataset.prefetch(np.array([3, 0, 7, -1]))
    assert not source.read
    dataset.get_batch(np.array([3, 0, 7, -1]))
    assert source.fetched == source.read
    assert len(source.read) > 4
    # T5 reads no token beyond the target, BERT whole sentences.
    whole = [length == source.sequence_lengths[sequence] for sequence, _, length in source.read]
    assert all(whole) or which == 1
    local = Recording(made.dataset, useful=False)
    type(made)(local, *arguments).prefetch([3, 0, 7])
    assert not local.fetched


def write_words(prefix, sentences):
    with IndexedDatasetBuilder(prefix, np.uint16) as builder:
        flat = np.concatenate(sentences)
        builder.add_document(flat, [len(sentence) for sentence in sentences])
    return str(prefix)


def test_full_words_of_a_sentencepiece_vocabulary(tmp_path):
    """Pieces that begin words are marked, not those that continue them."""
    pieces = {n: ("▁" if n % 3 == 0 else "") + f"w{n}" for n in range(5, 60)}
    tokenizer = replace(TOKENIZER, inv_vocab={**dict.fromkeys(range(5), "▁[X]"), **pieces}, pad=0)
    prefix = write_words(tmp_path / "words", [np.arange(6, 57), np.arange(9, 33)])
    config = BERTMaskedWordPieceDatasetConfig(
        random_seed=1,
        sequence_length=96,
        blend=([prefix], None),
        split="1",
        tokenizer=tokenizer,
        classification_head=False,
        short_sequence_probability=0,
        masking_word_start="▁",
    )
    source = BERTMaskedWordPieceDataset.build_low_level_dataset(prefix, config)
    dataset = BERTMaskedWordPieceDataset(source, prefix, np.arange(1), 50, Split.train, config)
    loss_mask = dataset.get_batch(np.arange(50))["loss_mask"][:, 1:76].reshape(50, 25, 3)
    masked = loss_mask.sum(axis=2)
    assert set(masked.reshape(-1).tolist()) == {0, 3}
    assert dataset.unique_identifiers["masking_word_start"] == "▁"


def test_defaults_are_those_of_the_training_scripts():
    shared = {
        "random_seed": 1,
        "sequence_length": 512,
        "blend": (["x"], None),
        "split": "1",
        "tokenizer": TOKENIZER,
    }
    bert = BERTMaskedWordPieceDatasetConfig(**shared)
    t5 = T5MaskedWordPieceDatasetConfig(**shared, sequence_length_decoder=128)
    assert (bert.masking_probability, bert.short_sequence_probability) == (0.15, 0.1)
    assert (bert.masking_max_ngram, bert.masking_use_geometric_distribution) == (3, False)
    assert (t5.masking_max_ngram, t5.masking_use_geometric_distribution) == (10, True)
    assert (t5.sequence_length_encoder, t5.sequence_length_decoder) == (512, 128)
    assert bert.classification_head
    assert bert.masking_do_full_word
    assert not bert.masking_do_permutation
