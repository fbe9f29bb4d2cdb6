"""Text to token files, held to what the reference's writer makes of it."""

import shutil
from pathlib import Path

from coredata.preprocess import preprocess
from coredata.testing.compare import assert_same_bytes
from coredata.testing.golden_vectors import golden_directory
from coredata.text import ByteTokenizer

_KEYS = ("text", "summary")


def assert_golden_preprocess(directory: Path) -> int:
    """The corpus of the vectors, tokenised into `directory`, gives the same bytes; returns pairs.

    Raises:
        AssertionError: a file differs; it names it and the byte.
    """
    golden = golden_directory("preprocess")
    shutil.copy(golden / "corpus.jsonl", directory)
    pairs = 0
    for name, append_eod in (("corpus", False), ("corpus_eod", True)):
        preprocess(
            str(directory / "corpus.jsonl"),
            str(directory / name),
            ByteTokenizer(),
            json_keys=_KEYS,
            append_eod=append_eod,
        )
        for key in _KEYS:
            pairs += 1
            for suffix in (".idx", ".bin"):
                file = f"{name}_{key}_document{suffix}"
                actual, expected = (directory / file).read_bytes(), (golden / file).read_bytes()
                assert_same_bytes(actual, expected, f"preprocess/{file}")
    return pairs
