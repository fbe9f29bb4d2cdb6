"""Packs of conversations, single samples and made-up ones of the reference, bit for bit."""

import numpy as np
import pytest

from coredata.testing.compare import assert_same_batch
from coredata.testing.golden_vectors import golden_case, golden_cases
from coredata.text.byte_conversation import ByteConversationTokenizer
from coredata.varlen import (
    MockLengths,
    Tokenized,
    alignment,
    convert_row,
    counting_tokens,
    detect_schema,
    fixed_sample,
    limit_tokens,
    mock_packed_sample,
    mock_single_sample,
    pack_conversations,
    parse_lengths,
    schema_columns,
    single_sample,
    split_conversations,
)

EOD, PAD = 256, 257
TOKENIZER = ByteConversationTokenizer()
SFT = golden_cases("sft")
VARLEN = [case for case in golden_cases("varlen") if "items" in case.settings]
MOCK = [case for case in golden_cases("varlen") if "first_lengths" in case.settings]
SCHEMAS = golden_case("varlen", "schemas").settings


def multiple_of(config):
    return alignment(
        config.get("context_parallel_size", 1),
        config.get("sequence_parallel_size", 0),
        config.get("data_parallel_size", 1),
        dynamic_context_parallel=config.get("dynamic_context_parallel", False),
    )


def expected(case, number):
    prefix = f"{number}_"
    return {k[len(prefix) :]: v for k, v in case.arrays.items() if k.startswith(prefix)}


def tokenized(item):
    if isinstance(item, str):
        ids = np.array(TOKENIZER.encode(item), np.int64)
        return Tokenized(ids, ids)
    return Tokenized(*TOKENIZER.tokenize_conversation(item))


def test_the_vectors_are_there():
    assert [len(SFT), len(VARLEN), len(MOCK)] == [5, 6, 6]


@pytest.mark.parametrize("case", SFT, ids=str)
def test_packs_match_the_reference(case):
    config, rows = case.settings["config"], case.settings["rows"]
    for number in range(case.settings["count"]):
        conversations = map(tokenized, split_conversations(rows[number % len(rows)]))
        sample, _ = pack_conversations(
            conversations, config["sequence_length"], multiple_of(config), PAD
        )
        assert_same_batch(sample, expected(case, number), f"{case}, sample {number}")


@pytest.mark.parametrize("case", VARLEN, ids=str)
def test_single_samples_match_the_reference(case):
    config, items = case.settings["config"], case.settings["items"]
    length = config["sequence_length"]
    pad = case.settings.get("pad")
    pad = EOD if pad is None else pad
    for number in range(case.settings["count"]):
        limited, _ = limit_tokens(tokenized(items[number % len(items)]), length, EOD)
        if config.get("varlen_sbhd_validation"):
            sample = fixed_sample(limited, length, pad)
        else:
            sample = single_sample(limited, multiple_of(config), pad)
        assert_same_batch(sample, expected(case, number), f"{case}, sample {number}")


@pytest.mark.parametrize("case", MOCK, ids=str)
def test_made_up_samples_match_the_reference(case):
    settings = case.settings
    length = settings["sequence_length"]
    options = MockLengths.of(settings["mock"], length)
    if options.mode == "file":
        text = "\n".join(["length", *map(str, settings["csv_lengths"])])
        lengths = parse_lengths(text, "lens.csv")
    else:
        lengths = options.draw()
    first = lengths[np.arange(32) % len(lengths)].tolist()
    assert first[: len(settings["first_lengths"])] == settings["first_lengths"]
    make = mock_packed_sample if case.name.endswith("_sft") else mock_single_sample
    for number in range(settings["count"]):
        tokens = counting_tokens(first[number])
        sample = make(tokens, length, multiple_of(settings), EOD, PAD)
        assert_same_batch(sample, expected(case, number), f"{case}, sample {number}")


@pytest.mark.parametrize("schema", sorted(SCHEMAS["conversions"]))
def test_conversions_match_the_reference(schema):
    case = SCHEMAS["conversions"][schema]
    assert len(case["rows"]) == len(case["normalized"]) > 0
    assert case["schema"] == detect_schema(case["columns"]) == schema
    for row, normalized in zip(case["rows"], case["normalized"], strict=True):
        assert convert_row(row, schema) == normalized


@pytest.mark.parametrize("case", SCHEMAS["detection"])
def test_detection_matches_the_reference(case):
    if "schema" in case:
        schema = detect_schema(case["columns"])
        assert schema == case["schema"]
        assert set(schema_columns(schema)) & set(case["columns"])
    else:
        with pytest.raises(ValueError, match="no schema fits the columns"):
            detect_schema(case["columns"])


@pytest.mark.parametrize("case", SCHEMAS["invalid"])
def test_refusals_match_the_reference(case):
    with pytest.raises(ValueError, match=r"^field .* is of type (list|dict|int); need a string"):
        convert_row(case["row"], case["schema"])
