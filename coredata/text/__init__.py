"""Text to tokens and back."""

from coredata.text.byte import ByteTokenizer
from coredata.text.null import NullTokenizer
from coredata.text.protocol import Tokenizer, require_eod
from coredata.text.surrogates import LoneSurrogateError, replace_lone_surrogates

__all__ = [
    "ByteTokenizer",
    "LoneSurrogateError",
    "NullTokenizer",
    "Tokenizer",
    "replace_lone_surrogates",
    "require_eod",
]
