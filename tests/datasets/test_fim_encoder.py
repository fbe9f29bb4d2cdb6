"""Infilling with gigatoken: the same samples as without."""

import pickle

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer

from coredata import IndexedDataset, IndexedDatasetBuilder, Split
from coredata.datasets import GPTFIMDataset, GPTFIMDatasetConfig
from coredata.text import TokenizerJson, demo_tokenizer
from coredata.text.fast import EncoderMismatchError, GigatokenTokenizer, accelerated_once

MARKS = ["<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<|endoftext|>"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    native = Tokenizer.from_str(demo_tokenizer().serialized())
    native.add_special_tokens([AddedToken(mark, normalized=False) for mark in MARKS])
    path = str(tmp_path_factory.mktemp("tokenizer") / "tokenizer.json")
    native.save(path)
    return TokenizerJson(path, eod="<|endoftext|>", pad="<|pad|>")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory, tokenizer):
    prefix = str(tmp_path_factory.mktemp("corpus") / "corpus")
    with IndexedDatasetBuilder(prefix, np.int32) as builder:
        for i in range(60):
            text = f"def f{i}(x):\n    return x + {i}  # naïve café 🙂\n" * (i % 9 + 1)
            ids = [*tokenizer.encode(text), tokenizer.eod]
            builder.add_document(ids, [len(ids)])
    return prefix


def dataset(prefix, tokenizer, **options):
    config = GPTFIMDatasetConfig(
        random_seed=3,
        sequence_length=128,
        split="1",
        blend=([prefix], None),
        tokenizer=tokenizer,
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
        fim_rate=0.9,
        **options,
    )
    source = IndexedDataset(prefix)
    return GPTFIMDataset(
        source, prefix, np.arange(len(source), dtype=np.int32), 40, Split.train, config
    )


@pytest.mark.parametrize("options", [{}, {"fim_truncate_or_pad": True}, {"fim_spm_rate": 1.0}])
@pytest.mark.parametrize("randomness", ["stream", "sample"])
def test_samples_do_not_depend_on_the_encoder(prefix, tokenizer, randomness, options):
    both = []
    for encoder in ("auto", "tokenizers"):
        samples = dataset(prefix, tokenizer, randomness=randomness, fim_encoder=encoder, **options)
        both.append([samples.get_batch(np.arange(k, k + 8)) for k in range(0, 40, 8)])
        used = samples._fast_infilling().tokenizer
        assert isinstance(used, GigatokenTokenizer) == (encoder == "auto")
    for mine, other in zip(*both, strict=True):
        for field in mine:
            np.testing.assert_array_equal(mine[field], other[field])


def test_one_encoder_is_shared_and_none_is_pickled(prefix, tokenizer):
    first, second = dataset(prefix, tokenizer), dataset(prefix, tokenizer)
    expected = first.get_batch([5])
    second.get_batch([5])
    assert first._fast_infilling().tokenizer is second._fast_infilling().tokenizer
    copy = pickle.loads(pickle.dumps(first))
    assert copy._faster is None
    assert copy.config.tokenizer.faster is None
    np.testing.assert_array_equal(copy.get_batch([5])["tokens"], expected["tokens"])


def test_other_tokenizers_are_left_alone(tokenizer):
    other = object()
    assert accelerated_once(other) is other
    assert accelerated_once(tokenizer) is accelerated_once(tokenizer)
    spelling = TokenizerJson(tokenizer._source, split_special_tokens=True, eod="<|endoftext|>")
    assert accelerated_once(spelling) is spelling


def test_other_ids_during_training_say_what_to_do(prefix, tokenizer, monkeypatch):
    def spoiled(self, texts):
        tokens, lengths = honest(self, texts)
        return tokens + 1, lengths

    monkeypatch.setattr("coredata.text.fast._CHARACTERS_A_CHECK", 100)
    samples = dataset(prefix, tokenizer)
    samples.get_batch([0])
    honest = GigatokenTokenizer.encode_unchecked
    monkeypatch.setattr(GigatokenTokenizer, "encode_unchecked", spoiled)
    with pytest.raises(EncoderMismatchError, match="fim_encoder='tokenizers' in a configuration"):
        samples.get_batch([0, 1, 2, 3])


def test_an_unknown_encoder(prefix, tokenizer):
    with pytest.raises(ValueError, match="fim_encoder: got 'fast', need"):
        dataset(prefix, tokenizer, fim_encoder="fast")
