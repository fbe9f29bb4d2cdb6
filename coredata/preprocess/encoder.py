"""Which package encodes: settled once, before any work is done."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coredata.formats.rows import DamagedFileError
from coredata.preprocess.errors import PreprocessError
from coredata.preprocess.plan import InputFile, plan_shards
from coredata.preprocess.reading import ShardRows
from coredata.text import Tokenizer
from coredata.text.fast import Acceleration, accelerated
from coredata.text.native import NativeTokenizer

ENCODERS = ("auto", "gigatoken", "tokenizers")

_PLACES = 4
_CHARACTERS = 4096
"""Of the input, at each place that the sample is taken from."""


def choose_encoder(
    wanted: str,
    tokenizer: Tokenizer,
    files: Sequence[InputFile],
    json_keys: Sequence[str],
    storage_options: Mapping[str, Any] | None = None,
) -> Acceleration:
    """What encodes: gigatoken where it may and gives the same ids, else the tokenizer itself.

    Raises:
        PreprocessError: gigatoken is insisted on, and cannot be used; or `wanted` is none of the
            three.
    """
    if wanted not in ENCODERS:
        known = ", ".join(map(repr, ENCODERS))
        raise PreprocessError(f"encoder={wanted!r} is unknown; there are {known}")
    if isinstance(tokenizer, NativeTokenizer):
        if wanted == "tokenizers":
            return Acceleration(tokenizer, "tokenizers", "as asked")
        chosen = accelerated(tokenizer, sample_texts(files, json_keys, storage_options))
    else:
        chosen = accelerated(tokenizer)
    if wanted == "gigatoken" and chosen.encoder != wanted:
        raise PreprocessError(
            f"encoder='gigatoken' cannot be used: {chosen.reason}. Leave the choice open with "
            "encoder='auto'"
        )
    return chosen


def sample_texts(
    files: Sequence[InputFile],
    json_keys: Sequence[str],
    storage_options: Mapping[str, Any] | None = None,
) -> list[str]:
    """The beginnings of some texts of the input, from a few files and places in them.

    Rows and files that cannot be used are passed over: the run itself tells about them.
    """
    texts: list[str] = []
    some = files[:: -(-len(files) // _PLACES)]
    for file in some:
        shards = plan_shards([file], max(file.size * len(some) // _PLACES, 1))
        for shard in shards[:_PLACES]:
            left = _CHARACTERS
            rows = ShardRows(shard, json_keys, storage_options)
            try:
                for text in _texts(rows):
                    texts.append(text[:left])
                    left -= len(text) + 1
                    if left <= 0:
                        break
            except DamagedFileError:
                continue
    return texts


def _texts(rows: ShardRows) -> Iterator[str]:
    for batch in rows.batches(_CHARACTERS):
        for row in batch.rows():
            for of_key in row.texts:
                yield from of_key
