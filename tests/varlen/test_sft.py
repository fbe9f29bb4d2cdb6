"""Packs of conversations: edges, and a plain twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.testing.compare import assert_same_batch
from coredata.varlen import (
    LossFacts,
    Tokenized,
    check_tokenized,
    pack_conversations,
    split_conversations,
    unpack_samples,
)

PAD = 99


def counting(length, first=1, counts=True):
    ids = np.arange(first, first + length, dtype=np.int64)
    return Tokenized(ids, ids if counts else np.full(length, -100))


def plain_pack(conversations, length, multiple, pad):
    """Token by token, as the format is described."""
    ids, targets, positions, bounds = [], [], [], [0]
    for conversation in conversations:
        ids += conversation.ids.tolist()
        targets += conversation.targets.tolist()
        positions += range(len(conversation.ids))
        while len(ids) % multiple:
            ids.append(pad)
            targets.append(pad)
            positions.append(positions[-1] + 1)
        bounds.append(len(ids))
        if len(ids) >= length + 1:
            ids, targets, positions = ids[:length], targets[:length], positions[:length]
            break
    while len(ids) < length + 1:
        ids.append(pad)
        targets.append(pad)
        positions.append(positions[-1] + 1 if positions else 0)
    bounds[-1 if len(bounds) > 1 else 1 :] = [length]
    labels = targets[1:]
    return {
        "tokens": np.array(ids[:-1]),
        "labels": np.array(labels),
        "loss_mask": np.array([x not in (pad, -100) for x in labels], np.float32),
        "position_ids": np.array(positions[:-1]),
        "cu_seqlens": np.array((bounds + [length] * length)[: length + 1], np.int32),
        "max_seqlen": np.array(max(np.diff(bounds)), np.int32),
    }


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.booleans()), max_size=6),
    st.integers(1, 30),
    st.sampled_from([1, 2, 4, 8]),
)
def test_packs_equal_a_plain_twin(lengths, length, multiple):
    conversations = [counting(n, 7 * i, counts) for i, (n, counts) in enumerate(lengths)]
    sample, facts = pack_conversations(conversations, length, multiple, PAD)
    expected = plain_pack(conversations, length, multiple, PAD)
    assert_same_batch(sample, expected, "pack")
    assert facts.kept <= facts.counted
    parts = unpack_samples([sample])
    assert sum(len(part["tokens"]) for part in parts) == length


def test_what_is_past_the_end_is_not_asked_for():
    def conversations():
        yield counting(9)
        raise RuntimeError("asked for more")

    sample, facts = pack_conversations(conversations(), 8, 1, PAD)
    np.testing.assert_array_equal(sample["tokens"], np.arange(1, 9))
    assert facts == LossFacts(8, 7)


def test_no_conversation_is_all_padding():
    sample, facts = pack_conversations([], 4, 2, PAD)
    np.testing.assert_array_equal(sample["tokens"], [PAD] * 4)
    np.testing.assert_array_equal(sample["position_ids"], range(4))
    np.testing.assert_array_equal(sample["cu_seqlens"], [0, 4, 4, 4, 4])
    assert (sample["max_seqlen"], sample["loss_mask"].sum(), facts) == (4, 0, LossFacts(0, 0))


def test_many_empty_conversations():
    empty = counting(0)
    sample, _ = pack_conversations([empty] * 9 + [counting(3)], 4, 1, PAD)
    assert sample["cu_seqlens"].shape == (5,)
    assert sample["max_seqlen"] == 4


def test_an_answer_that_is_cut_off_is_counted():
    prompt, answer = counting(6, counts=False), counting(4)
    both = Tokenized(*(np.concatenate(pair) for pair in zip(prompt, answer, strict=True)))
    assert pack_conversations([both], 6, 1, PAD)[1] == LossFacts(4, 0)
    assert pack_conversations([both], 8, 1, PAD)[1] == LossFacts(4, 2)


def test_an_end_token_that_pads_still_counts_in_the_text():
    ids = np.array([1, 2, PAD, 3, PAD])
    by_value, _ = pack_conversations([Tokenized(ids, ids)], 8, 1, PAD)
    by_place, _ = pack_conversations([Tokenized(ids, ids)], 8, 1, PAD, pad_counts=True)
    np.testing.assert_array_equal(by_value["loss_mask"], [1, 0, 1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(by_place["loss_mask"], [1, 1, 1, 1, 0, 0, 0, 0])


def test_conversations_begin_at_system_messages():
    roles = ["user", "assistant", "system", "system", "user"]
    messages = [{"role": role, "content": ""} for role in roles]
    cut = split_conversations(messages)
    assert [[m["role"] for m in part] for part in cut] == [roles[:2], roles[2:3], roles[3:]]
    assert split_conversations([]) == []


def test_what_a_tokenizer_gives_is_checked():
    small = np.array([1, 2], np.int32)
    checked = check_tokenized((small, small), "row 3")
    assert checked.ids.dtype == checked.targets.dtype == np.int64
    assert check_tokenized(([], []), "row 3").ids.dtype == np.int64
    with pytest.raises(ValueError, match=r"row 3 gave ids of shape \(2,\) .* of one length"):
        check_tokenized((small, small[:1]), "row 3")
    with pytest.raises(ValueError, match="type float64"):
        check_tokenized((small * 1.0, small), "row 3")
