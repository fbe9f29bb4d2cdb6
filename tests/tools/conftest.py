"""Token files, conversations, and parsed data flags for the tests of commands."""

import argparse
import json

import numpy as np
import pytest

from coredata.formats import IndexedDatasetBuilder
from coredata.tools.data_arguments import add_data_arguments

NULL = ("--tokenizer-type", "NullTokenizer", "--vocab-size", "1000")


@pytest.fixture
def write_pair(tmp_path):
    """Writes a token file of documents of 1 to 29 ids below 1000; gives its prefix."""

    def write(name, documents=40, dtype=np.uint16):
        prefix = str(tmp_path / name)
        rng = np.random.default_rng(len(name) + documents)
        lengths = rng.integers(1, 30, documents)
        with IndexedDatasetBuilder(prefix, dtype) as builder:
            builder.add_documents(rng.integers(0, 1000, lengths.sum()), lengths)
            builder.finalize()
        return prefix

    return write


@pytest.fixture
def chats(tmp_path):
    """A file of twelve conversations."""
    path = tmp_path / "chats.jsonl"
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    path.write_text("".join(json.dumps({"messages": turns}) + "\n" for _ in range(12)))
    return str(path)


@pytest.fixture
def parse():
    """Parses data flags."""

    def parse(*flags):
        parser = argparse.ArgumentParser()
        add_data_arguments(parser)
        return parser.parse_args([str(flag) for flag in flags])

    return parse
