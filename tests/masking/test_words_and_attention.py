import numpy as np
import pytest

from coredata.masking import WordTable, t5_attention_masks
from coredata.masking.words import BEGINS, CONTINUES, UNKNOWN


def test_wordpiece():
    table = WordTable.of({5: "##s", 0: "[PAD]", 3: "un", 4: "##able"})
    assert table.kinds.tolist() == [BEGINS, UNKNOWN, UNKNOWN, BEGINS, CONTINUES, CONTINUES]
    assert table.ids.tolist() == [0, 3, 4, 5]
    assert (table.count(BEGINS), table.count(CONTINUES)) == (2, 2)


@pytest.mark.parametrize("mark", ["▁", "Ġ"])
def test_marked_starts(mark):
    table = WordTable.of({0: f"{mark}un", 1: "able", 2: mark, 3: "##s"}, mark)
    assert table.kinds.tolist() == [BEGINS, CONTINUES, BEGINS, CONTINUES]


def test_vocabularies_that_are_none():
    with pytest.raises(ValueError, match="vocabulary: 0 tokens; need at least one"):
        WordTable.of({})
    with pytest.raises(ValueError, match="vocabulary: 2 tokens, the lowest with id -1; need"):
        WordTable.of({-1: "a", 0: "b"})


def test_attention_masks_pair_by_pair():
    enc_mask, dec_mask = np.array([[1, 1, 0, 1], [1, 0, 0, 0]]), np.array([[1, 1, 0], [1, 1, 1]])
    masks = t5_attention_masks(enc_mask, dec_mask)
    assert masks.encoder.shape == (2, 1, 4, 4)
    assert masks.decoder.shape == (2, 1, 3, 3)
    assert masks.encoder_decoder.shape == (2, 1, 3, 4)
    for row in range(2):
        for mask, queries, keys, causal in (
            (masks.encoder, enc_mask, enc_mask, False),
            (masks.decoder, dec_mask, dec_mask, True),
            (masks.encoder_decoder, dec_mask, enc_mask, False),
        ):
            for q, query in enumerate(queries[row]):
                for k, key in enumerate(keys[row]):
                    seen = query and key and not (causal and k > q)
                    assert mask[row, 0, q, k] == (not seen)
