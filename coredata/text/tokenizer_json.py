"""`tokenizer.json`, the file that nearly every model comes with."""

import json
import os.path
from collections.abc import Mapping, Sequence
from typing import Any, final

from coredata.storage import exists, read_bytes
from coredata.text.native import NativeTokenizer, TokenizerFileError
from coredata.text.special import read_configuration


@final
class TokenizerJson(NativeTokenizer):
    """A tokenizer from a `tokenizer.json`, made fit for preparing data.

    What such a file says about truncation and padding is switched off (some cut or fill every text
    to 128 ids), and no special tokens are added, whatever its post-processor would do.

    The ids of `eod`, `pad` and `bos` come from `tokenizer_config.json`, `special_tokens_map.json`
    or `generation_config.json` beside it, else from well-known names among its special tokens.
    For the tokenizer of a chat model the configured end is often the end of a *turn*; state `eod`
    to end documents with another token.

    Args:
        path: the file, local or a URL.
        eod: name or id of the token that ends a document, instead of the one found.
        pad: likewise for padding.
        bos: likewise for the start.
        unique_identifiers: what goes into the names of index caches, where it has to equal what
            another program wrote; by default class and content hash, not the path.
        split_special_tokens: spell out special tokens that occur in text, so that data cannot
            forge them. Tokens that the file adds without marking them special are not covered.

    Raises:
        FileNotFoundError: no such file.
        TokenizerFileError: it is not a `tokenizer.json`.
        SpecialTokenError: a stated token does not exist, or the files contradict each other.
    """

    def __init__(
        self,
        path: str,
        *,
        eod: str | int | None = None,
        pad: str | int | None = None,
        bos: str | int | None = None,
        unique_identifiers: Mapping[str, Any] | None = None,
        split_special_tokens: bool = False,
    ) -> None:
        super().__init__(
            path,
            eod=eod,
            pad=pad,
            bos=bos,
            unique_identifiers=unique_identifiers,
            split_special_tokens=split_special_tokens,
        )

    def _read(self) -> Sequence[bytes]:
        if not exists(self._source):
            raise FileNotFoundError(
                f"there is no {self._source}; give the path or URL of a tokenizer.json"
            )
        return [read_bytes(self._source)]

    def _build(self, content: Sequence[bytes]) -> Any:
        from tokenizers import Tokenizer

        try:
            return Tokenizer.from_buffer(content[0])
        except Exception as error:
            # The package raises nothing narrower than Exception itself.
            if type(error) not in (Exception, ValueError):
                raise
            raise TokenizerFileError(
                f"{self._source} is not a tokenizer.json: {_why(content[0])} ({error}). "
                "It should be the file that the tokenizers package saves."
            ) from None

    def _configuration(self) -> Mapping[str, Mapping[str, Any]]:
        return read_configuration(os.path.dirname(self._source))


def _why(content: bytes) -> str:
    try:
        parsed = json.loads(content)
    except ValueError:
        return f"its {len(content)} bytes are no JSON"
    if not isinstance(parsed, dict) or not isinstance(parsed.get("model"), dict):
        return 'it is JSON without a "model"'
    return "the tokenizers package cannot read it"
