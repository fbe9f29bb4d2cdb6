"""Conversations as bytes."""

import pickle

import numpy as np
import pytest

from coredata.text import Tokenizer
from coredata.text.byte_conversation import ByteConversationTokenizer
from coredata.text.conversation_protocol import ConversationTokenizer


def test_a_turn_is_role_bytes_end_and_only_assistant_text_counts() -> None:
    tokenizer = ByteConversationTokenizer()
    ids, targets = tokenizer.tokenize_conversation(
        [
            {"role": "system", "content": ""},
            {"role": "user", "content": "é"},
            {"role": "assistant", "content": "ab"},
            {"role": "tool", "content": "1"},
        ]
    )
    expected = [263, 267, 264, 0xC3, 0xA9, 267, 265, 97, 98, 267, 266, 49, 267]
    np.testing.assert_array_equal(ids, np.array(expected, np.int64), strict=True)
    counted = [-100] * 7 + [97, 98, 267] + [-100] * 3
    np.testing.assert_array_equal(targets, np.array(counted, np.int64), strict=True)


def test_no_messages_give_no_tokens() -> None:
    ids, targets = ByteConversationTokenizer().tokenize_conversation([])
    assert ids.shape == targets.shape == (0,)


def test_it_is_a_conversation_tokenizer_and_travels() -> None:
    tokenizer = pickle.loads(pickle.dumps(ByteConversationTokenizer()))
    assert isinstance(tokenizer, ConversationTokenizer)
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer == ByteConversationTokenizer()


def test_a_role_without_token_is_refused() -> None:
    with pytest.raises(ValueError, match="message 1: role 'critic' has no token; use one of"):
        ByteConversationTokenizer().tokenize_conversation(
            [{"role": "user", "content": ""}, {"role": "critic", "content": ""}]
        )


def test_content_that_is_no_string_is_refused() -> None:
    with pytest.raises(ValueError, match="message 0: content is of type list, need a string"):
        ByteConversationTokenizer().tokenize_conversation([{"role": "user", "content": []}])


def test_a_missing_end_token_is_named() -> None:
    tokenizer = ByteConversationTokenizer(special_tokens={"<|user|>": 264})
    with pytest.raises(ValueError, match=r"no token <\|end\|>; give it special_tokens with"):
        tokenizer.tokenize_conversation([{"role": "user", "content": "a"}])
