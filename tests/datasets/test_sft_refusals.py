"""What datasets of rows refuse, and rows that bear no loss."""

import json

import numpy as np
import pytest

from coredata.datasets import (
    ItemList,
    LossCounts,
    MockSFTDataset,
    MockVarlenDataset,
    SFTDataset,
    SFTDatasetConfig,
    VarlenDataset,
    VarlenDatasetConfig,
    check_samples,
    open_conversations,
    show_sample,
)
from coredata.formats import IndexedDatasetBuilder, RowError
from coredata.indices import Split
from coredata.text import ByteConversationTokenizer, ByteTokenizer, NullTokenizer

S = 16
SYSTEM = {"role": "system", "content": ""}


def turn(role, content):
    return {"role": role, "content": content}


def config_of(kind, **options):
    config = SFTDatasetConfig if kind in (SFTDataset, MockSFTDataset) else VarlenDatasetConfig
    given = {"random_seed": 1, "sequence_length": S, "tokenizer": ByteConversationTokenizer()}
    return config(**{**given, **options})


def in_memory(kind, items, **options):
    config = config_of(kind, blend=(["x"], None), split="1", **options)
    return kind(ItemList(items, "rows"), None, np.arange(len(items)), None, Split.train, config)


def write(tmp_path, *rows):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def of_file(kind, path, **options):
    config = config_of(kind, blend=([path], None), split="1", **options)
    source = kind.build_low_level_dataset(path, config)
    return kind(source, path, np.arange(len(source)), None, Split.train, config)


CHATS = [
    [SYSTEM, turn("user", "hi"), turn("assistant", "yes")],
    [SYSTEM, turn("user", "q" * 30), turn("assistant", "lost")],
    [SYSTEM, turn("user", "q" * 8), turn("assistant", "cut off")],
    [SYSTEM, turn("user", "nobody answers")],
]


@pytest.mark.parametrize("kind", [SFTDataset, VarlenDataset])
def test_samples_without_loss_are_counted(kind):
    dataset = in_memory(kind, CHATS)
    dataset.get_batch([0, 1, -1])
    dataset[2], dataset[3]
    counts = dataset.loss_counts
    expected = LossCounts(
        samples=4, without_answer=1, without_loss=2, shortened=2, tokens=17, lost=10
    )
    assert counts == expected
    assert check_samples(dataset) == (expected, ())
    assert dataset.loss_counts == expected
    assert str(counts).startswith("4 samples: 2 without loss (1 have no answer), 2 with answers")
    if kind is SFTDataset:
        masks = dataset.get_batch(range(4))["loss_mask"].sum(axis=1)
        np.testing.assert_array_equal(masks, [4, 0, 3, 0])


@pytest.mark.parametrize("kind", [SFTDataset, VarlenDataset])
def test_samples_without_loss_can_be_refused(kind):
    dataset = in_memory(kind, CHATS, samples_without_loss="refuse")
    assert dataset[0]["loss_mask"].any()
    with pytest.raises(
        ValueError, match=r"^rows, row 1: sample 1 of .* its 5 tokens that bear loss lie beyond the"
    ):
        dataset[1]
    with pytest.raises(ValueError, match=r"sample 3 .* bears no loss, because it has no answer"):
        dataset.get_batch([2, 3])


def test_a_row_that_cannot_be_converted_is_named(tmp_path):
    good = {"messages": CHATS[0]}
    parts = {"messages": [turn("user", [{"type": "image"}])]}
    path = write(tmp_path, good, parts)
    for kind in (SFTDataset, VarlenDataset):
        dataset = of_file(kind, path)
        assert dataset[0]["loss_mask"].any()
        with pytest.raises(
            RowError,
            match=r"a\.jsonl, line 2: field messages\[0\]\.content is of type list; need a",
        ):
            dataset[1]


def test_a_row_that_the_tokenizer_refuses_is_named(tmp_path):
    path = write(tmp_path, {"messages": [turn("critic", "boo")]})
    with pytest.raises(
        RowError, match=r"a\.jsonl, line 1: message 0: role 'critic' has no token"
    ) as e:
        of_file(SFTDataset, path)[0]
    assert e.value.__notes__[-1].startswith("while making sample 0 of the train split of")


def test_turns_reach_the_template_of_packs_with_all_their_keys(tmp_path):
    turns = [turn("user", "hi"), {**turn("assistant", "yo"), "tool_calls": [{"name": "f"}]}]
    path = write(tmp_path, {"messages": turns})
    assert of_file(SFTDataset, path).dataset[0] == turns
    plain = [SYSTEM, turn("user", "hi"), turn("assistant", "yo")]
    assert of_file(VarlenDataset, path).dataset[0] == plain


def test_rows_of_other_layouts(tmp_path):
    sharegpt = write(tmp_path, {"conversations": [{"from": "human", "value": "hi"}]})
    expected = [SYSTEM, turn("user", "hi")]
    assert of_file(SFTDataset, sharegpt).dataset[0] == expected
    text = write(tmp_path, {"text": "hello"})
    assert of_file(VarlenDataset, text)[0]["tokens"].tolist() == list(b"hello")
    with pytest.raises(ValueError, match=r"a\.jsonl has plain text .* Use VarlenDataset for text"):
        of_file(SFTDataset, text)
    with pytest.raises(RowError, match="rows, row 0: plain text, but packs are made of"):
        in_memory(SFTDataset, ["text"])[0]
    pairs = write(tmp_path, {"chosen": "a", "rejected": "b"})
    with pytest.raises(ValueError, match=r"a\.jsonl \(1 rows\): no schema fits the columns chosen"):
        of_file(VarlenDataset, pairs)


def test_bad_lines_are_an_error_or_left_out(tmp_path):
    path = write(tmp_path, {"messages": CHATS[0]})
    with open(path, "a") as file:
        file.write('{"messages": [\n\n' + json.dumps({"messages": CHATS[1], "id": 3}) + "\n")
    for cache in (None, str(tmp_path / "cache")):
        with pytest.raises(RowError, match=r"a\.jsonl, line 2, byte \d+: not JSON"):
            of_file(SFTDataset, path, path_to_cache=cache)
        dataset = of_file(SFTDataset, path, skip_bad_rows=True, path_to_cache=cache)
        assert (len(dataset), dataset.dataset.rows.skipped) == (2, 1)
        assert dataset.dataset.where(1).endswith("a.jsonl, line 4")
        with pytest.raises(RowError, match="line 2"):
            of_file(SFTDataset, path, path_to_cache=cache)


def test_an_empty_row_is_two_end_tokens(tmp_path):
    path = write(tmp_path, {"messages": None}, {"other": 1}, {"messages": []})
    dataset = of_file(VarlenDataset, path)
    for sample in dataset.__getitems__([0, 1, 2]):
        assert (sample["tokens"].tolist(), sample["labels"].tolist()) == ([256], [256])
    pack = of_file(SFTDataset, path)[0]
    assert (pack["tokens"] == 257).all()
    assert not pack["loss_mask"].any()


def test_an_end_token_that_pads_is_learned_where_it_ends_an_answer():
    tokenizer = ByteConversationTokenizer(eod=267, pad=267)
    chat = [turn("user", "a"), turn("assistant", "b")]
    mask = in_memory(SFTDataset, [chat], tokenizer=tokenizer)[0]["loss_mask"]
    assert mask.tolist() == [0, 0, 0, 1, 1] + [0] * 11
    as_reference = in_memory(
        SFTDataset, [chat], tokenizer=tokenizer, allow_ambiguous_pad_tokens=True
    )
    assert as_reference[0]["loss_mask"].tolist() == [0, 0, 0, 1] + [0] * 12


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (SFTDataset, {"samples_without_loss": "drop"}, "samples_without_loss: got 'drop', need"),
        (SFTDataset, {"segment_ids": True}, "segment_ids: it is on, but samples of conversations"),
        (SFTDataset, {"sequence_length": 1}, "sequence_length: got 1, need at least 2"),
        (VarlenDataset, {"tokenizer": None}, "tokenizer: got None"),
    ],
)
def test_bad_settings_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        config_of(kind, **options)


def test_a_tokenizer_must_have_an_end_and_write_conversations():
    class Endless:
        vocab_size = 10
        eod = None

    with pytest.raises(ValueError, match=r"Endless has no end-of-document id \(eod\)"):
        config_of(VarlenDataset, tokenizer=Endless())
    with pytest.raises(ValueError, match="ByteTokenizer has no tokenize_conversation"):
        in_memory(SFTDataset, CHATS, tokenizer=ByteTokenizer())
    text = in_memory(VarlenDataset, ["ab", CHATS[0]], tokenizer=ByteTokenizer())
    assert text[0]["tokens"].tolist() == [97, 98]
    with pytest.raises(ValueError, match="rows, row 1: tokenizer: ByteTokenizer has no tokenize_c"):
        text[1]


@pytest.mark.parametrize(
    ("kind", "mock"), [(SFTDataset, MockSFTDataset), (VarlenDataset, MockVarlenDataset)]
)
def test_files_and_made_up_data_are_not_mixed(kind, mock):
    with pytest.raises(
        ValueError, match=f"{kind.__name__} reads files.* build {mock.__name__} for"
    ):
        kind.build_low_level_dataset(None, config_of(kind))
    with_files = config_of(kind, blend=(["x"], None), split="1")
    rows = mock.build_low_level_dataset("x", with_files)
    with pytest.raises(ValueError, match=f"{mock.__name__} makes its own. Use {kind.__name__}, or"):
        mock(rows, None, np.arange(5), 5, Split.train, with_files)


def mock_of(kind, text, **options):
    name = "sft" if kind is MockSFTDataset else "varlen"
    config = config_of(kind, **{f"{name}_mock_dataset_config_json": text}, **options)
    rows = kind.build_low_level_dataset(None, config)
    return kind(rows, None, np.arange(len(rows)), 10, Split.train, config)


def test_options_of_made_up_data_are_text_or_a_file(tmp_path):
    text = '{"min_seq_len": 4, "max_seq_len": 4, "mean_seq_len": 4}'
    path = tmp_path / "mock.json"
    path.write_text(text)
    for given in (text, str(path)):
        assert mock_of(MockVarlenDataset, given)[7]["tokens"].tolist() == [1, 2, 3]
    with pytest.raises(
        ValueError, match=r"sft_mock_dataset_config_json: Expecting .* need a JSON o"
    ):
        mock_of(MockSFTDataset, "{mode}")
    path.write_text("[1]")
    with pytest.raises(
        ValueError, match=r"varlen_mock_dataset_config_json: got '\[1\]', need an obj"
    ):
        mock_of(MockVarlenDataset, str(path))
    with pytest.raises(
        ValueError, match="sft_mock_dataset_config_json: mode: got 'x', need one of"
    ):
        mock_of(MockSFTDataset, '{"mode": "x"}')


def test_made_up_packs_padded_to_a_fixed_length():
    dataset = mock_of(MockSFTDataset, '{"format": "sbhd"}')
    batch = dataset.get_batch(range(4))
    assert {field: values.shape for field, values in batch.items()} == dict.fromkeys(
        ["tokens", "labels", "loss_mask", "position_ids"], (4, S)
    )
    for text, options in (('{"format": "sbhd"}', {}), (None, {"varlen_sbhd_validation": True})):
        with pytest.raises(ValueError, match="varlen_sbhd_validation: made-up samples of varying"):
            mock_of(MockVarlenDataset, text, **options)


def test_made_up_lengths_with_real_tokens(tmp_path):
    prefix = str(tmp_path / "c")
    with IndexedDatasetBuilder(prefix, np.uint16) as builder:
        builder.add_documents(np.arange(10, 16), np.array([2, 0, 3, 1]))
        builder.finalize()
    options = {"mode": "verification", "data_path": prefix}
    options |= {"min_seq_len": 9, "max_seq_len": 9, "mean_seq_len": 9}
    dataset = mock_of(MockVarlenDataset, json.dumps(options))
    expected = {0: [10, 11, 12, 13, 14, 15, 10, 11], 6: [12, 13, 14, 15, 10, 11, 12, 13]}
    for sample, tokens in expected.items():
        assert dataset[sample]["tokens"].tolist() == tokens
        assert dataset[sample]["labels"].tolist() == [*tokens[1:], 256]
    assert dataset.fingerprint()["source_tokens_tokens"] == 6
    with IndexedDatasetBuilder(str(tmp_path / "d"), np.uint16) as builder:
        builder.add_documents(np.arange(0), np.array([0]))
        builder.finalize()
    with pytest.raises(ValueError, match=r"data_path: the token files .* hold no tokens"):
        mock_of(MockVarlenDataset, json.dumps({**options, "data_path": str(tmp_path / "d")}))


def test_a_sample_side_by_side():
    dataset = in_memory(SFTDataset, [[turn("user", "hé"), turn("assistant", "yo")]])
    lines = show_sample(dataset[0], dataset.config.tokenizer).splitlines()
    assert lines[0].split() == ["place", "position", "token", "text", "label", "text"]
    assert lines[2].split() == ["1", "1", "104", "'h'", "-100"]
    assert lines[6].split() == ["5", "5", "265", "(special)", "121", "'y'", "loss"]
    assert lines[-1] == "16 tokens, 3 with loss"
    assert len(lines) == S + 2
    short = show_sample(dataset[0], dataset.config.tokenizer, limit=2).splitlines()
    assert short[-2:] == ["… 14 more", "16 tokens, 3 with loss"]


def test_packs_are_ruled_off_where_conversations_begin():
    dataset = in_memory(SFTDataset, [[*CHATS[0], SYSTEM]], sequence_length=32)
    lines = show_sample(dataset[0], dataset.config.tokenizer).splitlines()
    ruled = [number for number, line in enumerate(lines) if line.startswith("---")]
    assert len(ruled) == 1
    assert lines[ruled[0] + 1].split()[:3] == ["11", "0", "263"]


def test_rows_opened_by_themselves(tmp_path):
    path = write(tmp_path, {"instruction": "a", "input": "b", "output": "c", "id": 1})
    config = config_of(VarlenDataset, blend=([path], None), split="1")
    rows = open_conversations(path, config)
    assert rows.identity()["schema"] == "alpaca"
    assert rows[0] == [SYSTEM, turn("user", "a\n\nb"), turn("assistant", "c")]
    assert NullTokenizer(5).eod is not None


@pytest.mark.slow
def test_a_row_of_300_megabytes(tmp_path):
    path = tmp_path / "a.jsonl"
    piece = b"x" * (1 << 20)
    with path.open("wb") as file:
        file.write(b'{"text": "a"}\n{"text": "')
        for _ in range(300):
            file.write(piece)
        file.write(b'"}\n{"text": "b"}\n')
    dataset = of_file(VarlenDataset, str(path))
    assert [dataset[row]["tokens"].tolist() for row in (0, 2)] == [[97], [98]]
    sample = dataset[1]
    assert sample["tokens"].tolist() == [120] * S
    assert sample["labels"].tolist() == [120] * (S - 1) + [256]
    assert dataset.loss_counts.lost == (300 << 20) - S


def test_rows_are_checked_before_a_run(tmp_path):
    rows = [{"messages": CHATS[0]}, {"messages": [turn("critic", "boo")]}] * 12
    dataset = of_file(SFTDataset, write(tmp_path, *rows, {"messages": 3}))
    report = check_samples(dataset)
    assert (report.losses.samples, report.losses.without_loss) == (12, 0)
    assert [refused.sample for refused in report.refused] == [*range(1, 24, 2), 24]
    lines = str(report).splitlines()
    assert lines[1] == "13 samples cannot be made"
    assert lines[2].startswith("  1: ")
    assert "a.jsonl, line 2: message 0: role 'critic' has no token" in lines[2]
    assert lines[-1] == "  … 3 more"
    assert "field messages is of type int" in check_samples(dataset, [0, 24]).refused[0].reason
    assert dataset.loss_counts == LossCounts()
    with pytest.raises(IndexError, match="sample 25 was asked of"):
        check_samples(dataset, [25])
