"""What a view holds of samples of every kind, and the page that it makes."""

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from coredata.datasets import (
    BERTMaskedWordPieceDataset,
    BlendedMegatronDatasetBuilder,
    GPTDataset,
    GPTDatasetConfig,
    GPTFIMDataset,
    GPTFIMDatasetConfig,
    ItemList,
    SFTDataset,
    SFTDatasetConfig,
    T5MaskedWordPieceDataset,
    VarlenDataset,
    VarlenDatasetConfig,
    WithoutSamples,
)
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split
from coredata.testing import golden_cases
from coredata.testing.golden_masked import (
    CORPUS,
    golden_masked_dataset,
    golden_masked_tokenizer,
    write_golden_corpus,
)
from coredata.text import ByteConversationTokenizer, ByteTokenizer, demo_tokenizer
from coredata.tools.view_cells import escaped, text_width
from coredata.tools.view_page import (
    sample_data,
    sample_page,
    table_page,
    wants_colours,
    write_lines,
)
from coredata.tools.view_sample import view_sample
from coredata.tools.view_text import text_units

TOKENIZER = demo_tokenizer()
TEXTS = ["The first one.\nIt has two lines.", "Zweiter: ünï 漢字 😀", "\x1b[31mno colour\x07"]


@pytest.fixture
def prefix(tmp_path):
    name = str(tmp_path / "a-rather-long-name-of-a-corpus_text_document")
    with IndexedDatasetBuilder(name, np.uint16) as builder:
        for text in TEXTS * 4:
            ids = [*TOKENIZER.encode(text), TOKENIZER.eod]
            builder.add_document(ids, [len(ids)])
        builder.finalize()
    return name


def build(prefix, cls=GPTDataset, config=GPTDatasetConfig, blend=None, samples=12, **options):
    settings = {
        "random_seed": 2,
        "sequence_length": 48,
        "blend": ([prefix], None) if blend is None else blend,
        "split": "1",
        "tokenizer": TOKENIZER,
        **options,
    }
    builder = BlendedMegatronDatasetBuilder(cls, [samples, None, None], config=config(**settings))
    return builder.build()[0]


def page(view, width=80, colours=False):
    stream = io.StringIO()
    write_lines(sample_page(view, width, colours), stream, colours)
    return stream.getvalue()


def test_a_gpt_sample(prefix):
    dataset = build(prefix)
    view = view_sample(dataset, 1, TOKENIZER)
    (row,) = view.rows
    assert row.tokens.tolist() == dataset[1]["tokens"].tolist()
    assert "".join(unit.text for unit in row.units) == TOKENIZER.decode(row.tokens.tolist())
    assert [unit.begin for unit in row.units] == [0, *(unit.end for unit in row.units[:-1])]
    begins = [placed.begin for placed in view.parts]
    assert begins == [0, *(placed.end for placed in view.parts[:-1])]
    assert view.parts[-1].end == 48
    for number, placed in enumerate(view.parts, 1):
        assert (row.segments[placed.begin : placed.end] == number).all()
    text = page(view)
    for placed in view.parts:
        assert f"document {placed.part.document}, tokens {placed.part.offset}–" in text
    flat = " ".join(text.split())
    assert "tokens: 48 tokens; loss at 48 places, 1 of them for a label that is not in the" in flat
    assert "‹<|endoftext|>›" in text


def test_every_position_of_the_text_is_told(prefix):
    view = view_sample(build(prefix, inter_document_masking=True), 0, TOKENIZER)
    (row,) = view.rows
    for line in page(view, 60).splitlines():
        if " │ " in line:
            place, position = map(int, line.split(" │ ")[0].split())
            assert row.positions[place] == position
    assert len({int(row.positions[placed.begin]) for placed in view.parts}) == 1


def test_text_that_is_not_learned_is_marked_without_colours_and_dim_with(prefix):
    dataset = build(prefix, eod_mask_loss=True)
    view = view_sample(dataset, 1, TOKENIZER)
    (row,) = view.rows
    item = dataset[1]
    marked = page(view)
    # Nothing predicts the first token, and the end of a document predicts with no loss.
    after = [0, *(int(place) + 1 for place in np.flatnonzero(item["loss_mask"][:-1] == 0))]
    assert np.flatnonzero(~row.learned).tolist() == after
    assert len(after) > 1
    for place in after:
        (unit,) = [unit for unit in row.units if unit.begin <= place < unit.end]
        assert f"⟦{''.join(map(escaped, unit.text))}⟧" in marked
    assert "⟦‹<|endoftext|>›⟧" not in marked
    assert "note: text between ⟦ and ⟧ is not learned" in page(view)
    coloured = page(view, colours=True)
    assert "⟦" not in coloured
    assert f"│ {''.join(map(escaped, row.units[0].text))}\x1b[0m" in coloured  # as the margin
    assert json.loads(json.dumps(sample_data(view)))["rows"][0]["learned"] == [
        int(place not in after) for place in range(48)
    ]


def test_control_characters_never_reach_the_terminal(prefix):
    dataset = build(prefix)
    for sample in range(len(dataset)):
        text = page(view_sample(dataset, sample, TOKENIZER))
        assert all(c.isprintable() for line in text.split("\n") for c in line)
    assert r"\x1b[31m" in "".join(
        page(view_sample(dataset, k, TOKENIZER)) for k in range(len(dataset))
    )


@pytest.mark.parametrize(
    ("terminal", "no_colour", "expected"),
    [(True, "", True), (True, "1", False), (False, "", False)],
)
def test_colours_are_for_people(monkeypatch, terminal, no_colour, expected):
    monkeypatch.setenv("NO_COLOR", no_colour)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    assert wants_colours(stream) is expected


def test_a_stream_that_cannot_write_everything(prefix):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    write_lines(sample_page(view_sample(build(prefix), 0, TOKENIZER), 80, False), stream, False)
    stream.flush()
    assert b"sample 0 of" in raw.getvalue()


@pytest.mark.parametrize("width", [10, 30, 41, 80, 133])
def test_no_line_is_wider_than_the_terminal(prefix, width):
    dataset = build(prefix, blend=([prefix, prefix], [1, 2]), inter_document_masking=True)
    view = view_sample(dataset, 2, TOKENIZER)
    for lines in (sample_page(view, width, False), table_page(view, TOKENIZER, width)):
        for line in lines:
            assert sum(cell.width for cell in line) <= max(width, 30)
            assert sum(cell.width for cell in line) == text_width("".join(c.text for c in line))


def test_a_blend_and_a_skip_list(prefix):
    blend = build(prefix, blend=([prefix, prefix], [1, 2]))
    view = view_sample(WithoutSamples(blend, [0, 1]), 2, TOKENIZER)
    assert view.rows[0].tokens.tolist() == blend[2]["tokens"].tolist()
    assert {placed.part.dataset for placed in view.parts} == {int(blend[2]["dataset_id"])}
    assert (view.sample, view.samples, view.dataset) == (2, len(blend), "GPTDataset")
    assert (view.kept_number, view.kept_samples, view.blend) == (0, len(blend) - 2, 2)
    assert "a blend of 2" in page(view)
    assert "of dataset" in page(view)


def test_a_short_last_sample_shows_its_padding(tmp_path):
    name = str(tmp_path / "short")
    with IndexedDatasetBuilder(name, np.uint16) as builder:
        ids = TOKENIZER.encode("word " * 40)
        builder.add_document(ids, [len(ids)])
        builder.finalize()
    config = GPTDatasetConfig(
        random_seed=2,
        sequence_length=100,
        blend=([name], None),
        split="1",
        tokenizer=TOKENIZER,
        drop_last_partial_validation_sequence=False,
    )
    source = GPTDataset.build_low_level_dataset(name, config)
    dataset = GPTDataset(source, name, np.arange(1), None, Split.valid, config)
    view = view_sample(dataset, len(dataset) - 1, TOKENIZER)
    assert "padding, places" in page(view)
    assert (view.rows[0].segments == 0).sum() > 0


def test_infilling(prefix):
    tokenizer = ByteTokenizer()
    name = prefix + "-bytes"
    with IndexedDatasetBuilder(name, np.uint16) as builder:
        for k in range(20):
            ids = [*tokenizer.encode(f"document {k} " * 3), tokenizer.eod]
            builder.add_document(ids, [len(ids)])
        builder.finalize()
    dataset = build(
        name,
        GPTFIMDataset,
        GPTFIMDatasetConfig,
        tokenizer=tokenizer,
        fim_rate=1.0,
        sequence_length=64,
    )
    view = view_sample(dataset, 0, tokenizer)
    assert "infilling may have permuted the tokens" in view.notes[0]
    assert all(placed.begin is None for placed in view.parts)
    assert "‹<fim_prefix>›" in page(view)


def conversations():
    rows = [
        [
            {"role": "user", "content": f"Question {k}{k * '?'}"},
            {"role": "assistant", "content": f"Answer {k}."},
        ]
        for k in range(4)
    ]
    return ItemList(rows), ByteConversationTokenizer()


def test_conversations():
    rows, tokenizer = conversations()
    config = SFTDatasetConfig(
        random_seed=1, sequence_length=64, blend=(["x"], None), split="1", tokenizer=tokenizer
    )
    dataset = SFTDataset(rows, "chats.jsonl", np.arange(4), 8, Split.train, config)
    view = view_sample(dataset, 5, tokenizer)
    text = page(view)
    assert "from chats.jsonl: document 1" in text
    assert "Answer 1." in text.replace("⟧", "").replace("⟦", "")
    learned = "".join(
        unit.text
        for unit in view.rows[0].units
        if view.rows[0].learned[unit.begin] and not unit.special
    )
    assert learned.startswith("Answer 1.")
    assert "Question" not in learned
    assert "⟧Answer 1." in text


def test_samples_of_their_own_length():
    rows, tokenizer = conversations()
    config = VarlenDatasetConfig(
        random_seed=1,
        sequence_length=64,
        blend=(["x"], None),
        split="1",
        tokenizer=tokenizer,
        context_parallel_size=4,
    )
    dataset = VarlenDataset(rows, "chats.jsonl", np.arange(4), None, Split.train, config)
    view = view_sample(dataset, 2, tokenizer)
    (row,) = view.rows
    real = int(dataset[2]["original_seq_len"][0])
    assert (row.segments > 0).sum() == real < len(row.tokens)
    assert "padding, places" in page(view)


class Words:
    """The tokenizer of the golden corpus, with texts."""

    def __init__(self):
        self.inner = golden_masked_tokenizer()
        self.special_tokens_dict = {}
        for role in ("cls", "sep", "mask", "bos", "eos", "pad"):
            setattr(self, role, getattr(self.inner, role))
        self.eod = None

    def decode(self, ids):
        return " ".join(self.inner.inv_vocab.get(int(number), f"<{number}>") for number in ids)


@pytest.mark.parametrize("case", golden_cases("masked", without=(CORPUS,)), ids=lambda c: c.name)
def test_masked_sentences(case, tmp_path):
    tokenizer = Words()
    dataset = golden_masked_dataset(case, write_golden_corpus(tmp_path / "corpus"))
    view = view_sample(dataset, 1, tokenizer)
    fields = [row.field for row in view.rows]
    text = page(view)
    if isinstance(dataset, T5MaskedWordPieceDataset):
        assert fields == ["text_enc", "text_dec"]
        assert "text_enc: " in text
        assert "text_dec: " in text
    else:
        assert isinstance(dataset, BERTMaskedWordPieceDataset)
        assert fields == ["text"]
        (row,) = view.rows
        item = dataset[1]
        learned = np.flatnonzero(item["loss_mask"])
        assert sorted(row.answers) == learned.tolist()
        for place, answer in row.answers.items():
            assert answer == tokenizer.decode([item["labels"][place]])
            assert f"={answer}" in page(view, 5000)
        assert set(row.segments[row.segments > 0].tolist()) <= {1, 2}
    first, end = dataset.sample_index[1][:2].tolist()
    assert [placed.part.sequence for placed in view.parts] == list(range(first, end))


def test_json(prefix):
    view = view_sample(build(prefix), 0, TOKENIZER)
    data = json.loads(json.dumps(sample_data(view)))
    assert data["rows"][0]["tokens"] == view.rows[0].tokens.tolist()
    assert data["parts"][0]["path"] == prefix
    assert data["parts"][0]["begin"] == 0


def test_tables(prefix):
    view = view_sample(build(prefix), 0, TOKENIZER)
    lines = ["".join(cell.text for cell in line) for line in table_page(view, TOKENIZER, 100)]
    assert len(lines) == 2 + 48
    assert lines[1].split() == ["place", "pos", "seg", "id", "text", "label", "text", "loss"]
    assert lines[2].split()[:4] == ["0", "0", "1", str(view.rows[0].tokens[0])]


def test_samples_that_there_are_not(prefix):
    dataset = build(prefix)
    with pytest.raises(IndexError, match=rf"sample {len(dataset)} was asked of {len(dataset)} sam"):
        view_sample(dataset, len(dataset), TOKENIZER)


def metaspace():
    """A tokenizer that writes a word's blank only where another word is before it."""
    vocabulary = {"▁the": 0, "▁cat": 1, "s": 2, "<0xC3>": 3, "<0xA9>": 4, "<unk>": 5, "▁": 6}
    inner = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )

    class Wrapped:
        special_tokens_dict = None
        eod = pad = eos = bos = cls = sep = mask = None

        def decode(self, ids):
            return inner.decode([int(number) for number in ids], skip_special_tokens=False)

    return Wrapped()


def test_blanks_stay_at_breaks_and_after_special_tokens():
    units = text_units([0, 1, 2, 0], metaspace(), {1, 3})
    assert [unit.text for unit in units] == ["the", " cat", "s", " the"]
    tokenizer = metaspace()
    tokenizer.mask = 5
    units = text_units([0, 5, 1], tokenizer)
    assert [(unit.text, unit.special) for unit in units] == [
        ("the", False),
        ("<unk>", True),
        (" cat", False),
    ]


def test_blanks_between_words_and_characters_of_several_tokens():
    units = text_units([0, 1, 2, 3, 4, 0], metaspace())
    assert [unit.text for unit in units] == ["the", " cat", "s", "é", " the"]
    assert [(unit.begin, unit.end) for unit in units][3] == (3, 5)


@given(st.text(max_size=40), st.sets(st.integers(0, 60), max_size=5))
def test_units_hold_every_token_once_and_the_whole_text(text, breaks):
    ids = TOKENIZER.encode(text)
    units = text_units(ids, TOKENIZER, breaks)
    assert [unit.begin for unit in units] == [0, *(u.end for u in units)][: len(units)]
    assert (units[-1].end if units else 0) == len(ids)
    if "�" not in "".join(unit.text for unit in units):  # no character was cut in two
        assert "".join(unit.text for unit in units) == TOKENIZER.decode(ids)
    assert all(not any(u.begin < b < u.end for b in breaks) for u in units)
