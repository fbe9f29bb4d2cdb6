"""Half characters: surrogates without their partner, which JSON allows and UTF-8 does not."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


class LoneSurrogateError(ValueError):
    """Text with a lone surrogate was to be encoded."""


def replace_lone_surrogates(text: str) -> tuple[str, int]:
    """`text` with U+FFFD in place of every lone surrogate, and how many there were."""
    if text.isascii():
        return text, 0
    return _SURROGATE.subn(_REPLACEMENT, text)


def lone_surrogate_error(text: str, number: int | None = None) -> LoneSurrogateError | None:
    """The error for encoding `text` (text `number` of a batch), None if it has no surrogate."""
    found = _SURROGATE.search(text)
    if found is None:
        return None
    where = "" if number is None else f" of text {number}"
    return LoneSurrogateError(
        f"cannot encode a lone surrogate U+{ord(found.group()):04X} at character "
        f"{found.start()}{where}: it is half of a character and has no UTF-8 form. "
        "Mend the text first: replace_lone_surrogates(text) puts U+FFFD there."
    )


def utf8(text: str, number: int | None = None) -> bytes:
    """`text` as UTF-8.

    Raises:
        LoneSurrogateError: it cannot be written so.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise lone_surrogate_error(text, number) or error from None
