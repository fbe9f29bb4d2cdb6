"""The permutation against a slow twin, its draws one by one, and its edges."""

from itertools import repeat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.fim import FIMOptions, Infilling, Permuted
from coredata.text import ByteTokenizer

EOD, PAD, PREFIX, MIDDLE, SUFFIX, FIM_PAD, SPLIT = range(256, 263)
TOKENIZER = ByteTokenizer()


class Script:
    """Draws written down beforehand; keeps what was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def binomial(self, n, p):
        self.asked.append(("binomial", n, p))
        return self.answers.pop(0)

    def randint(self, low, high, size):
        self.asked.append(("randint", low, high, size))
        return np.array(self.answers.pop(0))


def ids(text):
    return np.frombuffer(text.encode(), np.uint8).astype(np.int64)


def join(*parts):
    return np.concatenate([ids(p) if isinstance(p, str) else np.array([p]) for p in parts])


def run(sample, draws, **options):
    return Infilling.of(FIMOptions(**options), TOKENIZER).sample(sample, draws)


# Twin: lists, one sample, one piece at a time, straight down the page.


def slow(sample, draws, options):
    def piece(part, rate):
        if not draws.binomial(1, rate):
            return part
        text = bytes(i for i in part if i < 256).decode("utf-8", errors="replace")
        if options.fim_no_prefix and text.startswith(options.fim_no_prefix):
            return part
        a, b = sorted(draws.randint(0, len(text) + 1, size=2))
        pre, mid, suf = ([*text[x:y].encode()] for x, y in ((0, a), (a, b), (b, None)))
        if options.truncate_or_pad:
            excess = len(pre) + len(mid) + len(suf) + 3 - len(part)
            if excess > 0 and len(suf) <= excess:
                return part
            suf = suf[: len(suf) - excess] if excess > 0 else suf + [FIM_PAD] * -excess
        if draws.binomial(1, options.fim_spm_rate):
            return [PREFIX, SUFFIX, *suf, MIDDLE, *pre, *mid]
        return [PREFIX, *pre, SUFFIX, *suf, MIDDLE, *mid]

    def segment(part):
        if options.fim_split_sample is None or SPLIT not in part:
            return piece(part, options.fim_rate)
        if not draws.binomial(1, options.fim_rate):
            return part
        return over(part, SPLIT, lambda p: piece(p, options.fim_fragment_rate))

    def over(part, token, change):
        out = []
        while token in part:
            at = part.index(token)
            if at > 0:
                out += [*change(part[:at]), token]
            part = part[at + 1 :]
        return out + change(part)

    out = over([int(i) for i in sample], EOD, segment)[: len(sample)]
    return out + [FIM_PAD] * (len(sample) - len(out))


RATES = st.sampled_from([0.0, 0.3, 1.0]) | st.floats(0, 1)
TOKEN = st.integers(97, 99) | st.integers(0, 255) | st.sampled_from([EOD, SPLIT, PAD, MIDDLE])
SAMPLES = st.lists(TOKEN, max_size=60).map(lambda x: np.array(x, np.int64))
OPTIONS = st.builds(
    FIMOptions,
    fim_rate=RATES,
    fim_spm_rate=RATES,
    fim_split_sample=st.sampled_from([None, "<file_sep>"]),
    fim_fragment_rate=RATES,
    fim_no_prefix=st.sampled_from([None, "a", "bc"]),
    truncate_or_pad=st.booleans(),
)


@settings(deadline=None)
@given(st.lists(SAMPLES, max_size=5), OPTIONS, st.integers(0, 2**32 - 1))
def test_matches_the_slow_twin(samples, options, seed):
    ours, theirs = np.random.RandomState(seed), np.random.RandomState(seed)
    special = TOKENIZER.special_tokens.values()
    out = Infilling.of(options, TOKENIZER, special).batch(samples, repeat(ours))
    assert [s.tolist() for s in out] == [slow(s, theirs, options) for s in samples]
    assert all(s.dtype == np.int64 for s in out)
    np.testing.assert_array_equal(ours.get_state()[1], theirs.get_state()[1])
    assert ours.get_state()[2] == theirs.get_state()[2]


@settings(deadline=None)
@given(st.text(max_size=40), st.integers(0, 2**32 - 1))
def test_prefix_middle_and_suffix_are_the_text(text, seed):
    infilling = Infilling.of(FIMOptions(fim_rate=1.0), TOKENIZER)
    (part,) = infilling.plan(ids(text), np.random.RandomState(seed))
    assert isinstance(part, Permuted)
    assert part.prefix + part.middle + part.suffix == text


@settings(deadline=None)
@given(SAMPLES, st.integers(0, 2**32 - 1))
def test_every_piece_keeps_its_length_if_asked(sample, seed):
    options = FIMOptions(fim_rate=1.0, truncate_or_pad=True)
    parts = Infilling.of(options, TOKENIZER).plan(sample, np.random.RandomState(seed))
    before = [len(p) for p in np.split(sample, np.flatnonzero(sample == EOD))]
    after = [len(p) for p in np.split(np.concatenate(parts), np.flatnonzero(sample == EOD))]
    first = sample[:1].tolist() == [EOD] or ((sample[1:] == EOD) & (sample[:-1] == EOD)).any()
    assert first or before == after


def test_psm_order():
    draws = Script(1, [5, 2], 0)
    out = run(ids("abcdefgh"), draws, fim_rate=0.9, fim_spm_rate=0.25)
    assert out.tolist() == join(PREFIX, "ab", SUFFIX, "fgh", MIDDLE).tolist()
    assert draws.asked == [("binomial", 1, 0.9), ("randint", 0, 9, 2), ("binomial", 1, 0.25)]


def test_spm_order():
    sample = join("ab", EOD, "cdefghij")
    out = run(sample, Script(1, [1, 1], 1, 0))
    assert out.tolist() == join(PREFIX, SUFFIX, "b", MIDDLE, "a", EOD, "cdefgh")[:11].tolist()


def test_cut_points_count_characters_not_bytes():
    out = run(join("äöü", EOD, "xyz"), Script(1, [1, 2], 0, 0))
    assert out.tolist() == join(PREFIX, "ä", SUFFIX, "ü", MIDDLE, "ö", EOD)[:10].tolist()


def test_end_tokens_without_text_before_them_are_dropped():
    out = run(join(EOD, "ab", EOD, EOD, "c"), Script(0, 0))
    assert out.tolist() == join("ab", EOD, "c", FIM_PAD, FIM_PAD).tolist()


def test_the_piece_after_the_last_end_token_is_permuted_even_if_empty():
    draws = Script(0, 1, [0, 0], 0)
    out = run(join("abcd", EOD, EOD, EOD), draws)
    assert out.tolist() == join("abcd", EOD, PREFIX, SUFFIX).tolist()
    assert draws.asked[2] == ("randint", 0, 1, 2)


def test_an_empty_sample_stays_empty():
    assert run(np.empty(0, np.int64), Script(1, [0, 0], 0)).tolist() == []


def test_the_result_is_cut_on_the_right():
    assert run(ids("abc"), Script(1, [3, 3], 0)).tolist() == join(PREFIX, "ab").tolist()


def test_no_prefix_leaves_the_piece_and_draws_nothing_more():
    draws = Script(1, 1, [0, 1], 0)
    out = run(join("//a", EOD, "b/"), draws, fim_rate=1.0, fim_no_prefix="//")
    assert out.tolist() == join("//a", EOD, PREFIX, SUFFIX, "/")[: len(out)].tolist()
    assert len(draws.asked) == 4


def test_without_the_split_token_the_segment_is_one_piece_with_the_document_rate():
    draws = Script(0)
    run(ids("ab"), draws, fim_rate=0.4, fim_split_sample="<file_sep>", fim_fragment_rate=0.7)
    assert draws.asked == [("binomial", 1, 0.4)]


def test_fragments_have_their_own_rate_after_the_documents():
    draws = Script(1, 0, 0, 0, 0)
    options = {"fim_rate": 0.4, "fim_split_sample": "<file_sep>", "fim_fragment_rate": 0.7}
    out = run(join("ab", SPLIT, SPLIT, "c", SPLIT, "d", EOD, "e"), draws, **options)
    assert out.tolist() == join("ab", SPLIT, "c", SPLIT, "d", EOD, "e", FIM_PAD).tolist()
    assert [rate for *_, rate in draws.asked] == [0.4, 0.7, 0.7, 0.7, 0.4]


def test_a_document_that_is_not_drawn_keeps_its_fragments():
    draws = Script(0)
    options = {"fim_split_sample": "<file_sep>", "fim_fragment_rate": 0.7}
    sample = join(SPLIT, SPLIT, "c", SPLIT)
    assert run(sample, draws, **options).tolist() == sample.tolist()
    assert len(draws.asked) == 1


def test_same_length_shortens_the_suffix():
    out = run(ids("abcdefgh"), Script(1, [1, 2], 0), truncate_or_pad=True)
    assert out.tolist() == join(PREFIX, "a", SUFFIX, "cde", MIDDLE, "b").tolist()


def test_same_length_leaves_a_piece_whose_suffix_is_too_short():
    draws = Script(1, [2, 5])
    assert run(ids("abcdefgh"), draws, truncate_or_pad=True).tolist() == ids("abcdefgh").tolist()
    assert len(draws.asked) == 2


def test_same_length_pads_the_suffix():
    sample = join(MIDDLE, MIDDLE, MIDDLE, MIDDLE, MIDDLE, "ab")
    out = run(sample, Script(1, [1, 1], 0), truncate_or_pad=True)
    assert out.tolist() == join(PREFIX, "a", SUFFIX, "b", FIM_PAD, FIM_PAD, MIDDLE).tolist()


@pytest.mark.parametrize("half", [b"\xe2\x82", b"\x82ab", b"\xff\xfe"])
def test_half_characters_do_not_stop_it(half):
    sample = np.frombuffer(half, np.uint8).astype(np.int64)
    out = run(sample, np.random.RandomState(1), fim_rate=1.0)
    assert len(out) == len(sample)


def test_a_piece_of_special_tokens_only_is_an_empty_text():
    sample = np.array([PREFIX, MIDDLE, SUFFIX, FIM_PAD])
    out = run(sample, Script(1, [0, 0], 1))
    assert out.tolist() == [PREFIX, SUFFIX, MIDDLE, FIM_PAD]


def test_a_batch_goes_to_the_tokenizer_once():
    calls = []

    class Counting(ByteTokenizer):
        def encode_batch(self, texts):
            calls.append(len(texts))
            return super().encode_batch(texts)

    infilling = Infilling.of(FIMOptions(fim_rate=1.0), Counting())
    infilling.batch([join("ab", EOD, "cd"), ids("ef")], repeat(np.random.RandomState(3)))
    assert calls == [9]
    calls.clear()
    infilling.batch([], repeat(np.random.RandomState(3)))
    assert calls == []


def test_too_few_draws_are_refused():
    infilling = Infilling.of(FIMOptions(), TOKENIZER)
    with pytest.raises(ValueError, match="3 samples need as many draws, found 1"):
        infilling.batch([ids("a")] * 3, [np.random.RandomState(0)])


def test_special_tokens_do_not_become_text():
    class Loud(ByteTokenizer):
        def decode(self, ids):
            return "".join(chr(i) if i < 256 else f"<{i}>" for i in ids)

    sample = join("ab", PAD, "c", MIDDLE)
    out = Infilling.of(FIMOptions(), Loud(), [PAD]).sample(sample, Script(1, [1, 2], 0))
    assert out.tolist() == join(PREFIX, "a", SUFFIX, "c", MIDDLE).tolist()
