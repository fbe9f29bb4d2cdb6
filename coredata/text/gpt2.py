"""GPT-2's two files, `vocab.json` and `merges.txt`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, final

from coredata.storage import exists, read_bytes
from coredata.text.native import NativeTokenizer, TokenizerFileError


@final
class GPT2BPETokenizer(NativeTokenizer):
    """Byte-level BPE as GPT-2 has it, from a vocabulary and its merges.

    `<|endoftext|>` ends documents where the vocabulary has it; it is also recognised in text.

    Args:
        vocab_file: JSON, token -> id (`vocab.json`, `encoder.json`).
        merge_file: text, one pair of tokens a line, best first (`merges.txt`, `vocab.bpe`).
        eod: name or id of the token that ends a document, instead of `<|endoftext|>`.
        pad: likewise for padding; GPT-2 itself has none.
        bos: likewise for the start; GPT-2 itself has none.
        unique_identifiers: what goes into the names of index caches; by default class and
            content hash.
        split_special_tokens: spell out `<|endoftext|>` where it occurs in text.

    Raises:
        FileNotFoundError: a file is missing.
        TokenizerFileError: a file is not what it should be, or the two do not belong together.
        SpecialTokenError: a stated token does not exist.
    """

    def __init__(
        self,
        vocab_file: str,
        merge_file: str,
        *,
        eod: str | int | None = None,
        pad: str | int | None = None,
        bos: str | int | None = None,
        unique_identifiers: Mapping[str, Any] | None = None,
        split_special_tokens: bool = False,
    ) -> None:
        self._merge_file = merge_file
        super().__init__(
            vocab_file,
            eod=eod,
            pad=pad,
            bos=bos,
            unique_identifiers=unique_identifiers,
            split_special_tokens=split_special_tokens,
        )

    def _read(self) -> Sequence[bytes]:
        files = {"vocabulary": self._source, "merge": self._merge_file}
        for kind, path in files.items():
            if not exists(path):
                raise FileNotFoundError(
                    f"{kind} file {path} does not exist; GPT2BPETokenizer needs both files, such "
                    "as vocab.json and merges.txt"
                )
        return [read_bytes(path) for path in files.values()]

    def _build(self, content: Sequence[bytes]) -> Any:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

        vocabulary = _parse_vocabulary(content[0], self._source)
        merges = _parse_merges(content[1], self._merge_file)
        _check_bytes(vocabulary, pre_tokenizers.ByteLevel.alphabet(), self._source)
        _check_merges(vocabulary, merges, self._source, self._merge_file)
        native = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        native.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        native.decoder = decoders.ByteLevel()
        if _END in vocabulary:
            native.add_special_tokens([AddedToken(_END, special=True, normalized=False)])
        return native

    def _configuration(self) -> Mapping[str, Mapping[str, Any]]:
        return {}


_END = "<|endoftext|>"


def _parse_vocabulary(content: bytes, path: str) -> dict[str, int]:
    try:
        parsed = json.loads(content)
    except ValueError as error:
        raise TokenizerFileError(
            f"vocabulary file {path} is not JSON ({error}); it should be like vocab.json, and the "
            "merges should go into merge_file"
        ) from None
    whole = isinstance(parsed, dict) and all(type(value) is int for value in parsed.values())
    if not whole or not parsed:
        raise TokenizerFileError(
            f'vocabulary file {path} does not map tokens to ids, like {{"hello": 31373, …}}. '
            "A tokenizer.json goes into TokenizerJson."
        )
    return parsed


def _parse_merges(content: bytes, path: str) -> list[tuple[str, str]]:
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise TokenizerFileError(f"merge file {path} is not UTF-8: {error}") from None
    merges = []
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pieces = line.split(" ")
        if len(pieces) != 2 or not all(pieces):
            raise TokenizerFileError(
                f"line {number} of merge file {path} is {line[:60]!r}, not two tokens with a "
                "blank between, such as 'Ġ t'"
            )
        merges.append((pieces[0], pieces[1]))
    return merges


def _check_bytes(vocabulary: Mapping[str, int], alphabet: Sequence[str], path: str) -> None:
    missing = sorted(set(alphabet).difference(vocabulary))
    if missing:
        raise TokenizerFileError(
            f"vocabulary file {path} lacks {len(missing)} of the 256 single bytes (the first as "
            f"GPT-2 writes it: {missing[0]!r}): text with them would lose characters. Use the "
            "vocabulary of a byte-level BPE."
        )


def _check_merges(
    vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], path: str, merge_path: str
) -> None:
    for left, right in merges:
        for token in (left, right, left + right):
            if token not in vocabulary:
                raise TokenizerFileError(
                    f"merge file {merge_path} does not belong to vocabulary file {path}: it merges "
                    f"{left!r} and {right!r}, but {token!r} is not among the {len(vocabulary)} "
                    "tokens. Use the two files of one tokenizer."
                )
