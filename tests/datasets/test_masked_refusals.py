"""What BERT and T5 datasets refuse, and what they say."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from coredata import BlendedMegatronDatasetBuilder, Split
from coredata.datasets import (
    ArraySource,
    BERTMaskedWordPieceDataset,
    BERTMaskedWordPieceDatasetConfig,
    T5MaskedWordPieceDataset,
    T5MaskedWordPieceDatasetConfig,
)
from coredata.formats import IndexedDatasetBuilder
from coredata.testing.golden_masked import golden_masked_tokenizer
from coredata.text import ByteTokenizer

TOKENIZER = golden_masked_tokenizer()


def bert(**changes):
    values = {
        "random_seed": 1,
        "sequence_length": 32,
        "blend": (["x"], None),
        "split": "1",
        "tokenizer": TOKENIZER,
    }
    return BERTMaskedWordPieceDatasetConfig(**{**values, **changes})


def t5(**changes):
    values = {
        "random_seed": 1,
        "sequence_length": 32,
        "blend": (["x"], None),
        "split": "1",
        "tokenizer": TOKENIZER,
        "sequence_length_decoder": 32,
    }
    return T5MaskedWordPieceDatasetConfig(**{**values, **changes})


@pytest.mark.parametrize(
    ("make", "changes", "text"),
    [
        (bert, {"masking_probability": 1.0}, r"masking_probability: got 1.0, need a share above"),
        (bert, {"short_sequence_probability": 2}, r"short_sequence_probability: got 2, need a pr"),
        (bert, {"masking_max_ngram": 0}, r"masking_max_ngram: got 0, need at least 1"),
        (bert, {"sequence_length": 4}, r"sequence_length: got 4, need at least 5"),
        (t5, {"sequence_length": 3}, r"sequence_length: got 3, need at least 4"),
        (t5, {"masking_do_permutation": True}, r"masking_do_permutation: it is on together with"),
        (bert, {"masking_word_start": ""}, r'masking_word_start: got "", which every piece'),
        (bert, {"tokenizer": None}, r"tokenizer: got None, but masking needs its special ids"),
        (t5, {"sequence_length_decoder": None}, r"decoder: got None.* settings 9 are always eno"),
        (t5, {"sequence_length_decoder": 1}, r"sequence_length_decoder: got 1, need at least 2"),
    ],
)
def test_settings_out_of_range(make, changes, text):
    with pytest.raises(ValueError, match=text):
        make(**changes)


@dataclass
class Bare:
    """A tokenizer with a vocabulary and some of the roles."""

    inv_vocab: dict = field(default_factory=lambda: {0: "a", 1: "##b"})
    special_tokens_dict: dict = field(default_factory=dict)

    @property
    def additional_special_tokens_ids(self):
        raise NotImplementedError


def test_tokenizers_without_the_special_tokens():
    text = (
        r"tokenizer: BERT needs cls, sep, mask, but Bare has no sep and no mask. Give a tokenizer "
        r"with special tokens such as \[CLS\], \[SEP\] and \[MASK\], or name them in the tok"
    )
    with pytest.raises(ValueError, match=text):
        bert(tokenizer=Bare(special_tokens_dict={"cls_token": 7}))
    text = (
        r"tokenizer: T5 needs bos, eos, but Bare has no bos and no eos. State them, for example "
        r"load_tokenizer\(…, bos='\[CLS\]', eod='\[SEP\]'\) for a BERT vocabulary"
    )
    with pytest.raises(ValueError, match=text):
        t5(tokenizer=Bare())
    roles = {"bos_token": 1, "eos_token": 2}
    text = r"Bare has no sentinels for masked spans \(additional_special_tokens_ids\).*<extra_id_0>"
    with pytest.raises(ValueError, match=text):
        t5(tokenizer=Bare(special_tokens_dict=roles))
    with pytest.raises(ValueError, match="has no sentinels"):
        t5(tokenizer=replace(TOKENIZER, additional_special_tokens_ids=[]))


def test_a_tokenizer_without_a_vocabulary():
    with pytest.raises(ValueError, match=r"ByteTokenizer has no inv_vocab \(id -> text"):
        bert(tokenizer=ByteTokenizer())


def test_vocabularies_that_do_not_tell_words_apart():
    def with_pieces(*pieces):
        return replace(TOKENIZER, inv_vocab=dict(enumerate(pieces)))

    text = (
        r"masking_do_full_word: it is on, but none of the 3 tokens of MaskedTokenizer starts with "
        r"'##'. 2 start with '▁': set masking_word_start='▁', or masking_do_full_word=False"
    )
    with pytest.raises(ValueError, match=text):
        bert(tokenizer=with_pieces("▁a", "b", "▁c"))
    with pytest.raises(ValueError, match=r"1 start with 'Ġ': set masking_word_start='Ġ'"):
        bert(tokenizer=with_pieces("Ġa", "b"))
    text = r"cannot be told from their pieces. Give a WordPiece tokenizer, or masking_do_full_word="
    with pytest.raises(ValueError, match=text):
        bert(tokenizer=with_pieces("a", "b"))
    with pytest.raises(ValueError, match=r"'▁', so that .* Give masking_word_start=None \(WordP"):
        bert(tokenizer=with_pieces("a", "##b"), masking_word_start="▁")
    bert(tokenizer=with_pieces("a", "b"), masking_do_full_word=False)
    bert(tokenizer=with_pieces("▁a", "b"), masking_word_start="▁")


def write(prefix, documents):
    with IndexedDatasetBuilder(prefix, np.uint16) as builder:
        for sentences in documents:
            for sentence in sentences:
                builder.add_item(np.array(sentence))
            builder.end_document()
    return str(prefix)


def build(cls, config, prefix, num_samples=10):
    source = cls.build_low_level_dataset(prefix, config)
    documents = np.arange(cls.numel_low_level_dataset(source), dtype=np.int32)
    return cls(source, prefix, documents, num_samples, Split.train, config)


def test_documents_that_never_qualify(tmp_path):
    prefix = write(tmp_path / "corpus", [[], [[5, 6]], [[5] * 513, [6]], []])
    text = (
        r"10 samples were asked of the train split of .*corpus, but no document can give one: of "
        "4 documents 2 are empty, 1 have too few sentences, 1 have a sentence of more than 512"
    )
    with pytest.raises(ValueError, match=text):
        build(BERTMaskedWordPieceDataset, bert(), prefix)
    # One sentence is enough without the head.
    dataset = build(BERTMaskedWordPieceDataset, bert(classification_head=False), prefix)
    assert set(map(tuple, dataset.sample_index[:, :2].tolist())) == {(0, 1)}


def test_a_file_that_was_not_split_into_sentences(tmp_path):
    prefix = write(tmp_path / "corpus", [[[5, 6, 7]], [[8, 9]]])
    with pytest.raises(ValueError, match=r"single sequence: .* `coredata preprocess --split-sen"):
        build(BERTMaskedWordPieceDataset, bert(), prefix)
    with pytest.raises(ValueError, match=r"single sequence"):
        BlendedMegatronDatasetBuilder(
            BERTMaskedWordPieceDataset, (10, 0, 0), config=bert(blend=([prefix], None))
        ).build()


def test_an_epoch_of_documents_that_do_not_qualify_is_empty(tmp_path):
    prefix = write(tmp_path / "corpus", [[], [[5, 6]]])
    dataset = build(BERTMaskedWordPieceDataset, bert(), prefix, None)
    assert len(dataset) == 0
    with pytest.raises(IndexError, match="which has no samples"):
        dataset[0]


def test_long_sentences_alone_are_cut(tmp_path):
    prefix = write(tmp_path / "corpus", [[[5] * 2000]])
    for dataset in (
        build(BERTMaskedWordPieceDataset, bert(classification_head=False), prefix),
        build(T5MaskedWordPieceDataset, t5(), prefix),
    ):
        assert dataset[0]["truncated"] == 1


def test_too_few_sentinels(tmp_path):
    prefix = write(tmp_path / "corpus", [[[5, 6, 7, 8, 11, 13, 14, 15] * 20]])
    config = t5(
        tokenizer=replace(TOKENIZER, additional_special_tokens_ids=[100, 101]),
        masking_probability=0.5,
        masking_do_full_word=False,
        masking_max_ngram=1,
        masking_use_geometric_distribution=False,
        short_sequence_probability=0,
    )
    dataset = build(T5MaskedWordPieceDataset, config, prefix)
    text = (
        r"sample 3: it has 15 masked spans, but the tokenizer has 2 sentinels .* 15 sentinels are "
        "enough for any sample"
    )
    with pytest.raises(ValueError, match=text) as caught:
        dataset[3]
    assert caught.value.__notes__ == [f"while reading samples [3] of the train split of {prefix}"]
    enough = replace(
        config, tokenizer=replace(TOKENIZER, additional_special_tokens_ids=list(range(100, 115)))
    )
    assert build(T5MaskedWordPieceDataset, enough, prefix)[3]["loss_mask"].sum() == 31


def test_a_token_that_the_vocabulary_lacks(tmp_path):
    prefix = write(tmp_path / "corpus", [[[5, 6], [30]]])
    for dataset in (
        build(BERTMaskedWordPieceDataset, bert(), prefix),
        build(T5MaskedWordPieceDataset, t5(), prefix),
    ):
        with pytest.raises(ValueError, match=r"token 30 is not in the tokenizer's vocabulary"):
            dataset.get_batch(np.arange(10))


def test_a_source_that_does_not_know_its_documents():
    source = ArraySource(np.arange(5, 25), np.full(4, 5))
    with pytest.raises(TypeError, match=r"ArraySource has no document_indices.*IndexedDataset"):
        BERTMaskedWordPieceDataset(source, None, np.arange(4), 10, Split.train, bert())


def test_data_are_never_made_up():
    config = bert(blend=None, split=None)
    assert config.mock
    builder = BlendedMegatronDatasetBuilder(BERTMaskedWordPieceDataset, (1, 0, 0), config=config)
    with pytest.raises(ValueError, match=r"blend: got None, but BERT and T5 datasets read files"):
        builder.build()


def test_a_map_of_another_file(tmp_path):
    """A cache that is trusted and wrong is found when a sample is read."""
    prefix = write(tmp_path / "corpus", [[[5, 6], [7, 8]]] * 30)
    cache = str(tmp_path / "cache")
    build(BERTMaskedWordPieceDataset, bert(path_to_cache=cache), prefix)
    write(tmp_path / "corpus", [[[5, 6], [7, 8]]])
    trusting = bert(path_to_cache=cache, fast_cache_load=True)
    dataset = build(BERTMaskedWordPieceDataset, trusting, prefix)
    text = r"the sentence map says \[\d+, \d+, \d+\] .* the file has 2 sentences .* Delete the inde"
    with pytest.raises(ValueError, match=text):
        dataset.get_batch(np.arange(10))


@pytest.mark.parametrize("number", [-2, 10**6])
def test_samples_that_do_not_exist(number, tmp_path):
    prefix = write(tmp_path / "corpus", [[[5, 6], [7, 8]]] * 30)
    dataset = build(BERTMaskedWordPieceDataset, bert(), prefix)
    with pytest.raises(IndexError, match=rf"sample {number} was asked of the train split of"):
        dataset[number]


def test_a_pad_id_that_is_another_special_id(tmp_path):
    prefix = write(tmp_path / "corpus", [[[5, 6], [7, 8]]] * 30)
    config = bert(tokenizer=replace(TOKENIZER, pad=3))
    with pytest.warns(UserWarning, match="the pad id 3 of MaskedTokenizer is also its eos"):
        dataset = build(BERTMaskedWordPieceDataset, config, prefix)
    assert dataset[0]["padding_mask"].min() == -1
