"""Rows to messages: what the reference vectors leave open."""

import pytest

from coredata.varlen import SCHEMAS, convert_row, detect_schema, raw_messages, schema_columns


@pytest.mark.parametrize(
    ("row", "schema", "message"),
    [
        (
            {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": [{}]}]},
            "openai-messages",
            r"field messages\[1\].content is of type list; need a string. Rows with images",
        ),
        ({"messages": [{"role": 3}]}, "openai-messages", r"messages\[0\].role is of type int"),
        ({"messages": ["hi"]}, "openai-messages", r"messages\[0\] is of type str; need an object"),
        ({"messages": "hi"}, "openai-messages", "field messages is of type str; need a list of"),
        ({"conversations": [{"from": 1}]}, "sharegpt", r"conversations\[0\].from is of type int"),
        (
            {"conversations": [{"from": "gpt", "value": 1.5}]},
            "sharegpt",
            r"conversations\[0\].value is of type float; need a string",
        ),
        ({"instruction": [], "prompt": "x"}, "alpaca", "field instruction is of type list"),
        ({"instruction": "x", "output": False}, "alpaca", "field output is of type bool"),
        ({"text": ["a"]}, "pretrain-text", "field text is of type list"),
        ({"text": "a"}, "chosen-rejected", "schema: got 'chosen-rejected', need one of openai"),
    ],
)
def test_other_types_are_refused_by_field_and_type(row, schema, message):
    with pytest.raises(ValueError, match=message):
        convert_row(row, schema)


def test_unknown_columns_are_listed_with_the_known_schemas():
    with pytest.raises(ValueError, match="no schema fits the columns a, b") as e:
        detect_schema(["b", "a"])
    assert all(schema in str(e.value) for schema in SCHEMAS)
    with pytest.raises(ValueError, match="fits the columns none"):
        detect_schema([])
    with pytest.raises(ValueError, match="c19 and 5 more"):
        detect_schema(f"c{i:02d}" for i in range(25))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_row_without_any_of_its_columns(schema):
    """Columns are the union over rows, so a row may lack them all."""
    system = {"role": "system", "content": ""}
    expected = {
        "openai-messages": [],
        "sharegpt": [system],
        "alpaca": [
            system,
            {"role": "user", "content": ""},
            {"role": "assistant", "content": ""},
        ],
        "pretrain-text": "",
    }[schema]
    assert convert_row({"id": 1}, schema) == expected
    assert convert_row(dict.fromkeys(schema_columns(schema)), schema) == expected


def test_a_leading_system_turn_is_kept_and_a_later_one_is_not_moved():
    system = {"role": "system", "content": "s"}
    user = {"role": "user", "content": "u"}
    assert convert_row({"messages": [system, user]}, "openai-messages") == [system, user]
    converted = convert_row({"messages": [user, system]}, "openai-messages")
    assert converted == [{"role": "system", "content": ""}, user, system]


def test_raw_messages_keep_their_keys_and_order():
    turns = [{"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]}]
    assert raw_messages({"messages": turns}) == turns
    assert raw_messages({"messages": turns})[0] is not turns[0]
    assert raw_messages({"messages": None}) == []
    with pytest.raises(ValueError, match=r"field messages\[0\].content is of type dict"):
        raw_messages({"messages": [{"role": "user", "content": {}}]})
