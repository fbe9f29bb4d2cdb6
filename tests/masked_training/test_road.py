"""From prose to samples: what the command wrote, and what is in the samples made of it."""

import numpy as np
import pytest

from coredata import IndexedDataset
from coredata.preprocess import SentenceSplitter
from coredata.testing import assert_dataset_contract


def test_files_have_a_sequence_for_each_sentence(prose, texts, tokenizer):
    source = IndexedDataset(str(prose / "a_text_sentence"))
    splitter = SentenceSplitter("english")
    boundaries = source.document_indices
    assert len(boundaries) - 1 == len(texts)
    several = 0
    for document, text in enumerate(texts[:60]):
        begin, end = boundaries[document : document + 2]
        expected = [ids for sentence in splitter(text) if (ids := tokenizer.encode(sentence))]
        assert [source[sentence].tolist() for sentence in range(begin, end)] == expected
        several += len(expected) > 2
    assert several > 20, "hardly a document has several sentences"


@pytest.mark.parametrize("model", ["BERT", "T5"])
def test_contract(model, build):
    assert_dataset_contract(build(model, 400))


def test_a_bert_sample_without_its_masks_is_text(build, tokenizer):
    dataset = build("BERT", 400)
    batch = dataset.get_batch(np.arange(200))
    text = np.where(batch["loss_mask"] == 1, batch["labels"], batch["text"])
    assert (text[:, 0] == tokenizer.cls).all()
    assert 0.3 < batch["is_random"].mean() < 0.7
    masked, length = batch["loss_mask"].sum(axis=1), batch["padding_mask"].sum(axis=1)
    assert 0.10 < (masked / length).mean() < 0.16
    became = batch["text"][batch["loss_mask"] == 1]
    same = became == batch["labels"][batch["loss_mask"] == 1]
    assert 0.7 < (became == tokenizer.mask).mean() < 0.9
    assert 0.04 < same.mean() < 0.2
    # No word is masked in part.
    pieces = np.array([piece.startswith("##") for piece in tokenizer.inv_vocab.values()])
    joined = pieces[text[:, 1:]] & (text[:, :-1] != tokenizer.cls)
    joined &= text[:, :-1] != tokenizer.sep
    assert joined.sum() > 1000
    loss_mask = batch["loss_mask"]
    assert (loss_mask[:, 1:] == loss_mask[:, :-1])[joined].all()
    words = tokenizer.decode(text[0, 1 : length[0]])
    assert len(words.split()) > 5


def test_a_t5_sample_put_together_is_text(build, tokenizer):
    """The spans go back to where their sentinels are."""
    dataset = build("T5", 400)
    batch = dataset.get_batch(np.arange(100))
    sentinels = tokenizer.additional_special_tokens_ids
    assert len(sentinels) == 100
    source = dataset.datasets[0].dataset
    for k in range(100):
        where, sample = dataset.dataset_index[k], dataset.dataset_sample_index[k]
        part = dataset.datasets[where]
        first, last, target = part.sample_index[sample].tolist()
        expected = np.concatenate([part.dataset[s] for s in range(first, last)])[:target]
        encoder = batch["text_enc"][k][batch["enc_mask"][k] == 1].tolist()
        decoder = batch["text_dec"][k][batch["dec_mask"][k] == 1].tolist()
        assert decoder[0] == tokenizer.bos
        spans, current = {}, None
        for token in decoder[1:]:
            if token in sentinels:
                current = spans.setdefault(token, [])
            else:
                current.append(token)
        assert list(spans) == sentinels[: len(spans)]
        assert all(spans.values())
        together = [t for token in encoder for t in (spans.get(token) or [token])]
        assert together == expected.tolist()
        labels = batch["labels"][k][batch["loss_mask"][k] == 1].tolist()
        assert labels == [*decoder[1:], tokenizer.eos]
    assert source is not None
