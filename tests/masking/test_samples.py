"""BERT and T5 samples in compiled code against plain loops over numpy's RandomState."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.masking import (
    BertIds,
    BertMasking,
    MaskingSettings,
    SampleSentences,
    T5Ids,
    T5Masking,
    WordTable,
)
from coredata.testing import assert_same_batch
from coredata.testing.reference_masked import reference_bert_sample, reference_t5_sample

PAD, CLS, SEP, MASK, BOS, EOS = 0, 2, 3, 4, 5, 6
VOCABULARY = {
    **dict.fromkeys(range(7), "[SPECIAL]"),
    **{number: f"{'##' if number % 3 == 0 else ''}w{number}" for number in range(7, 40)},
}
WORDS = WordTable.of(VOCABULARY)
SENTINELS = tuple(range(100, 200))


@st.composite
def masking_settings(draw):
    geometric = draw(st.booleans())
    return MaskingSettings(
        probability=draw(st.sampled_from([0.15, 0.01, 0.5, 0.9]) | st.floats(0.01, 0.9)),
        max_ngram=draw(st.integers(1, 12)),
        full_words=draw(st.booleans()),
        permute=not geometric and draw(st.booleans()),
        longer_ngrams=draw(st.booleans()),
        geometric=geometric,
    )


# Mostly ordinary tokens, and now and then one of the special ids in the middle of the text.
TOKEN = st.integers(7, 39) | st.sampled_from([9, 12, 15]) | st.integers(0, 39)
SENTENCES = st.lists(st.lists(TOKEN, max_size=12), min_size=2, max_size=7)
SEED = st.integers(0, 2**32 - 1)
ROWS = st.lists(st.tuples(SENTENCES, st.integers(2, 60), SEED), min_size=1, max_size=4)
PADS = st.sampled_from([PAD, PAD, -1, 8])


def batch_of(rows, length=None):
    """Samples out of (sentences, target, seed)."""
    sentences = [np.array(s, np.int64) for row, _, _ in rows for s in row]
    whole = np.array([sum(map(len, row)) for row, _, _ in rows], np.int64)
    return SampleSentences(
        tokens=np.concatenate([np.empty(0, np.int64), *sentences]),
        lengths=np.array([len(s) for s in sentences], np.int64),
        row_splits=np.cumsum([0, *(len(row) for row, _, _ in rows)], dtype=np.int64),
        targets=np.array([target for _, target, _ in rows], np.int64),
        whole=whole,
        seeds=np.array([seed for _, _, seed in rows], np.int64),
        numbers=np.arange(len(rows)) + 70,
    )


def fill(masking, samples):
    # What is not written shows.
    out = {
        name: np.full(shape, -77, dtype)
        for name, (shape, dtype) in masking.fields(len(samples)).items()
    }
    masking.fill(samples, out)
    return out


def bert(options, head=True, pad=PAD, length=63):
    return BertMasking(length, head, options, WORDS, BertIds(CLS, SEP, MASK, pad))


def t5(options, pad=PAD, encoder=62, decoder=160, sentinels=SENTINELS):
    ids = T5Ids(BOS, EOS, CLS, SEP, MASK, pad, sentinels)
    return T5Masking(encoder, decoder, options, WORDS, ids)


def plain(probability=0.15, max_ngram=1, **options):
    names = ("full_words", "permute", "longer_ngrams", "geometric")
    return MaskingSettings(probability, max_ngram, **{**dict.fromkeys(names, False), **options})


@given(ROWS, masking_settings(), st.booleans(), PADS)
@settings(max_examples=300)
def test_bert_matches_the_plain_twin(rows, options, head, pad):
    masking = bert(options, head, pad)
    found = fill(masking, batch_of(rows))
    for k, (sentences, target, seed) in enumerate(rows):
        expected = reference_bert_sample(sentences, target, seed, masking)
        sample = {name: values[k] for name, values in found.items()}
        expected = {name: np.array(values, np.int64) for name, values in expected.items()}
        assert_same_batch(sample, expected, f"row {k}")


@given(ROWS, masking_settings(), PADS)
@settings(max_examples=300)
def test_t5_matches_the_plain_twin(rows, options, pad):
    masking = t5(options, pad)
    found = fill(masking, batch_of(rows))
    for k, (sentences, target, seed) in enumerate(rows):
        expected = reference_t5_sample(sentences, target, seed, masking)
        sample = {name: values[k] for name, values in found.items()}
        expected = {name: np.array(values, np.int64) for name, values in expected.items()}
        assert_same_batch(sample, expected, f"row {k}")


@given(ROWS, masking_settings())
@settings(max_examples=60)
def test_no_more_is_masked_than_asked(rows, options):
    found = fill(bert(options), batch_of(rows))
    for (_, target, _), loss_mask in zip(rows, found["loss_mask"], strict=True):
        assert loss_mask.sum() <= options.probability * target * (2 if options.permute else 1)


def test_full_words_are_masked_whole():
    sentences = [[7, 9, 12, 8, 9, 10, 11, 12, 15] * 6, [13, 15]]
    for seed in range(50):
        found = fill(bert(plain(max_ngram=3, full_words=True)), batch_of([(sentences, 60, seed)]))
        labels, original = found["labels"][0], np.array([CLS, *sentences[0]])
        assert found["is_random"].shape == (1,)
        masked = labels != -1
        continues = np.isin(np.where(masked, labels, found["text"][0]), [9, 12, 15])
        # A piece that continues a word shares the fate of what is before it.
        joined = continues[1:] & (found["text"][0][:-1] != SEP) & (found["text"][0][1:] != 0)
        joined &= found["text"][0][:-1] != CLS
        assert (masked[1:] == masked[:-1])[joined].all(), (seed, original)


def test_a_permuted_sample_has_the_same_tokens_in_other_places():
    tokens = [[number for number in range(7, 40)], [8, 7, 10]]
    options = plain(probability=0.3, permute=True)
    found = fill(bert(options, head=False), batch_of([(tokens, 60, 11)]))
    text, labels = found["text"][0], found["labels"][0]
    stayed = (labels != -1) & (text != MASK)
    assert stayed.sum() > 5
    assert found["loss_mask"][0].sum() == 2 * round(38 * 0.3)
    original = [CLS, *tokens[0], *tokens[1], SEP]
    at = labels != -1
    assert labels[at].tolist() == np.array(original + [0] * 25)[at].tolist()


def test_empty_sentences_and_empty_samples():
    rows = [([[], []], 20, 1), ([[], [9]], 20, 2)]
    found = fill(bert(plain()), batch_of(rows))
    assert found["text"][0, :3].tolist() == [CLS, SEP, 0]
    assert found["loss_mask"][0].sum() == 0
    found = fill(t5(plain()), batch_of(rows))
    assert found["text_enc"][0].sum() == 0
    assert found["text_dec"][0, :2].tolist() == [BOS, 0]
    assert found["labels"][0, :2].tolist() == [EOS, -1]


def test_no_samples():
    for masking in (bert(plain()), t5(plain())):
        for name, values in fill(masking, batch_of([])).items():
            assert len(values) == 0, name


def test_one_sentence_where_two_are_wanted():
    with pytest.raises(ValueError, match=r"sample 71: it has 1 sentence, but classification_head"):
        fill(bert(plain()), batch_of([([[8], [9]], 9, 1), ([[8]], 9, 1)]))


def test_a_token_that_the_vocabulary_lacks():
    for masking in (bert(plain()), t5(plain())):
        for token in (40, -1, 10**9):
            text = rf"sample 70: token {token} is not in the tokenizer's vocabulary \(ids up to 39"
            with pytest.raises(ValueError, match=text):
                fill(masking, batch_of([([[8], [token]], 9, 1)]))


def test_more_spans_than_sentinels():
    rows = [([[7, 8, 10], [11]], 40, 1), ([[8] * 50, [10]], 40, 1)]
    text = (
        r"sample 71: it has 6 masked spans, but the tokenizer has 3 sentinels .* 9 sentinels are "
        r"enough for any sample; .* a lower masking_probability, a higher masking_max_ngram"
    )
    with pytest.raises(ValueError, match=text):
        fill(t5(plain(), sentinels=SENTINELS[:3]), batch_of(rows))
    fill(t5(plain(), sentinels=SENTINELS[:6]), batch_of(rows))
    fill(t5(plain(0.9, 12, geometric=True), sentinels=SENTINELS[:54]), batch_of(rows))


def test_a_decoder_that_is_too_short():
    rows = [([[8] * 50, [10]], 40, 1)]
    text = (
        r"sample 70: its decoder input has 13 tokens, but sequence_length_decoder is 12. 19 are "
        "enough for any sample"
    )
    with pytest.raises(ValueError, match=text):
        fill(t5(plain(), decoder=12), batch_of(rows))
    found = fill(t5(plain(), decoder=13), batch_of(rows))
    assert (found["dec_mask"] == 1).all()
