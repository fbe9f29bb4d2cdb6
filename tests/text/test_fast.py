import os
import pickle
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from coredata.text import (
    ByteTokenizer,
    LoneSurrogateError,
    TokenizerJson,
    demo_tokenizer,
)
from coredata.text import Tokenizer as TokenizerProtocol
from coredata.text.fast import EncoderMismatchError, GigatokenTokenizer, accelerated
from coredata.text.native_batch import one_encoding_thread

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), max_size=6)
WORDS = st.sampled_from(["<|endoftext|>", "<|pad|>", "return", " the", "\n\n", "é", "  ", "1234"])
MIXED = st.lists(st.lists(WORDS | st.text("ab \n'", max_size=5)).map("".join), max_size=6)


@pytest.fixture(scope="module")
def demo() -> TokenizerJson:
    return demo_tokenizer()


@pytest.fixture(scope="module")
def fast(demo) -> GigatokenTokenizer:
    found = accelerated(demo, ["some text"])
    assert (found.encoder, found.reason) == ("gigatoken", "")
    assert isinstance(found.tokenizer, GigatokenTokenizer)
    return found.tokenizer


def saved(tmp_path, native: Tokenizer) -> TokenizerJson:
    path = str(tmp_path / "tokenizer.json")
    native.save(path)
    return TokenizerJson(path)


def changed_demo(change) -> Tokenizer:
    native = Tokenizer.from_str(demo_tokenizer().serialized())
    change(native)
    return native


@settings(deadline=None)
@given(texts=TEXTS | MIXED)
def test_ids_are_those_of_the_tokenizer(texts, demo, fast):
    for mine, other in zip(fast.encode_batch(texts), demo.encode_batch(texts), strict=True):
        np.testing.assert_array_equal(mine, other)
        assert mine.dtype == other.dtype


def test_all_else_is_the_tokenizers(demo, fast):
    assert isinstance(fast, TokenizerProtocol)
    for name in (
        "eod",
        "eos",
        "pad",
        "bos",
        "vocab_size",
        "special_tokens_dict",
        "unique_identifiers",
        "content_hash",
    ):
        assert getattr(fast, name) == getattr(demo, name)
    assert fast.encode("a b") == demo.encode("a b")
    assert fast.decode([300, 0]) == demo.decode([300, 0])
    assert fast.token_id("<|pad|>") == demo.token_id("<|pad|>")
    assert fast.tokenizer is demo
    assert repr(fast) == f"GigatokenTokenizer({demo!r})"
    assert accelerated(fast).tokenizer is fast


def test_a_pickle_is_small_and_opens_the_files_again(fast):
    pickled = pickle.dumps(fast)
    assert len(pickled) < 2000
    tokens, lengths = pickle.loads(pickled).encode_batch(["hello", "", "world"])
    expected, expected_lengths = fast.encode_batch(["hello", "", "world"])
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(lengths, expected_lengths)


def test_a_lone_surrogate_is_named(fast):
    with pytest.raises(LoneSurrogateError, match=r"U\+D800 at character 1 of text 2"):
        fast.encode_batch(["a", "b", "c\ud800"])
    with pytest.raises(LoneSurrogateError, match=r"U\+DFFF"):
        accelerated(fast.tokenizer, ["\udfff"])


def test_nothing_to_encode(fast):
    tokens, lengths = fast.encode_batch([])
    assert (len(tokens), len(lengths)) == (0, 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda native: native.add_tokens([AddedToken("hello", single_word=True)]),
            r"gives other ids for 'xhelloy  hello z\nhello\n'",
        ),
        (
            lambda native: setattr(native, "normalizer", normalizers.Lowercase()),
            "cannot do this tokenizer: Unsupported normalizer type: Lowercase",
        ),
    ],
)
def test_other_ids_and_unknown_kinds_are_left_to_the_tokenizer(tmp_path, change, reason):
    tokenizer = saved(tmp_path, changed_demo(change))
    found = accelerated(tokenizer)
    assert found.tokenizer is tokenizer
    assert found.encoder == "tokenizers"
    assert reason in found.reason


def test_kinds_that_it_lacks(tmp_path):
    native = Tokenizer(models.WordPiece({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    native.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found = accelerated(saved(tmp_path, native))
    assert found.encoder == "tokenizers"
    assert "cannot do this tokenizer: Unsupported model type" in found.reason


def test_the_sample_is_compared(monkeypatch, demo):
    def spoiled(self, texts):
        tokens, lengths = honest(self, texts)
        return (tokens + 1 if "needle" in texts else tokens), lengths

    honest = GigatokenTokenizer.encode_unchecked
    monkeypatch.setattr(GigatokenTokenizer, "encode_unchecked", spoiled)
    assert accelerated(demo, ["hay"]).encoder == "gigatoken"
    found = accelerated(demo, ["hay", "needle"])
    assert found.tokenizer is demo
    assert found.reason.startswith("gigatoken gives other ids for")


def test_pieces_of_early_batches_and_of_every_so_much_text_are_compared(monkeypatch, demo):
    checked, honest = [], GigatokenTokenizer._check_piece
    monkeypatch.setattr(
        GigatokenTokenizer,
        "_check_piece",
        lambda self, text: checked.append(self._batches) or honest(self, text),
    )
    monkeypatch.setattr("coredata.text.fast._BATCHES_CHECKED", 4)
    monkeypatch.setattr("coredata.text.fast._CHARACTERS_A_CHECK", 30)
    fast = GigatokenTokenizer(demo)
    numbers = []
    for _ in range(10):
        numbers.append(fast._batches + 1)
        fast.encode_batch(["0123456789"])
    # Encoding a piece is a batch by itself.
    first, then = numbers[:2], [numbers[4], numbers[7]]
    assert checked == [*first, *then]


def test_a_piece_of_a_batch_is_compared(monkeypatch, demo):
    def spoiled(self, texts):
        tokens, lengths = honest(self, texts)
        return (tokens + 1 if "needle" in texts[0] else tokens), lengths

    honest = GigatokenTokenizer.encode_unchecked
    fast = GigatokenTokenizer(demo)
    monkeypatch.setattr(GigatokenTokenizer, "encode_unchecked", spoiled)
    fast.encode_batch(["hay"])
    with pytest.raises(EncoderMismatchError, match=r"different ids for 'needle' .*'tokenizers'"):
        fast.encode_batch(["needle"])


def test_its_tokenizer_is_made_anew_so_that_memory_does_not_grow(demo):
    fast = GigatokenTokenizer(demo, cache_text=1000)
    first = fast._copies[0].backend
    fast.encode_batch(["x" * 300])
    assert fast._copies[0].backend is first
    expected = demo.encode("y" * 900)
    assert fast.encode_batch(["y" * 900])[0].tolist() == expected
    assert fast._copies[0].backend is not first


@pytest.mark.parametrize("allowed", [1, 3])
def test_threads_may_share_one(demo, allowed):
    fast = GigatokenTokenizer(demo, cache_text=3000)
    fast.allow_copies(allowed)
    texts = [f"def f{i}(x):\n    return x + {i}\n" * 5 for i in range(40)]
    expected = [demo.encode(text) for text in texts]
    barrier = threading.Barrier(4)

    def encode(_):
        barrier.wait()
        return [fast.encode_batch([text])[0].tolist() for text in texts]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(encode, range(4))) == [expected] * 4
    assert 1 <= len(fast._copies) <= allowed
    assert all(copy.users == 0 for copy in fast._copies)


def test_a_thread_that_would_wait_makes_a_copy_where_that_is_allowed(demo):
    fast = GigatokenTokenizer(demo, copies=2)
    two = [copy.backend for copy in fast._copies]
    with fast._copy(1) as first, fast._copy(1) as second, fast._copy(1) as third:
        assert [first, second] == two
        assert third in two
        fast.allow_copies(3)
        with fast._copy(1) as fourth:
            assert fourth not in two
        fast.allow_copies(1)  # never fewer
        assert len(fast._copies) == 3
    again = pickle.loads(pickle.dumps(fast))
    assert again.encode_batch(["some text"])[0].tolist() == demo.encode("some text")


def test_other_tokenizers_encode_by_themselves(demo):
    found = accelerated(ByteTokenizer())
    assert (found.encoder, found.reason) == (
        "ByteTokenizer",
        "a ByteTokenizer encodes by itself",
    )
    spelling = TokenizerJson(demo._source, split_special_tokens=True)
    found = accelerated(spelling)
    assert found.tokenizer is spelling
    assert found.reason == "gigatoken cannot spell out special tokens that occur in text"


def test_without_the_package(monkeypatch, demo):
    monkeypatch.setitem(sys.modules, "gigatoken", None)
    found = accelerated(demo)
    assert found.tokenizer is demo
    assert found.reason == "gigatoken is not installed; pip install 'coredata[fast]'"


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        (
            "raise ImportError('x.so: undefined symbol: y\\nmore')",
            "ImportError: x.so: undefined sy",
        ),
        ("import one_that_is_not_there", "ModuleNotFoundError: No module named 'one_that"),
        ("raise ImportError", "ImportError: "),
    ],
)
def test_a_broken_package_is_named(tmp_path, monkeypatch, demo, program, cause):
    (tmp_path / "gigatoken.py").write_text(program)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "gigatoken", raising=False)
    found = accelerated(demo)
    assert (found.tokenizer, found.encoder) == (demo, "tokenizers")
    assert re.fullmatch(
        rf"gigatoken is installed, but cannot be imported \({cause}.*\); "
        "pip install --force-reinstall gigatoken",
        found.reason,
    )


@settings(deadline=None)
@given(texts=TEXTS | MIXED)
def test_the_faster_call_gives_the_same_ids(texts, demo):
    slow = demo.encode_batch(texts)
    with one_encoding_thread():
        quick = demo.encode_batch(texts)
    for mine, other in zip(quick, slow, strict=True):
        np.testing.assert_array_equal(mine, other)
        assert mine.dtype == other.dtype


def test_the_faster_call_names_a_lone_surrogate(demo):
    with one_encoding_thread(), pytest.raises(LoneSurrogateError, match="of text 70"):
        demo.encode_batch([*["a"] * 70, "\ud800"])


def test_the_environment_is_as_before(monkeypatch):
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    with one_encoding_thread():
        assert os.environ["TOKENIZERS_PARALLELISM"] == "false"
    assert "TOKENIZERS_PARALLELISM" not in os.environ
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    with one_encoding_thread():
        assert os.environ["TOKENIZERS_PARALLELISM"] == "true"
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"
