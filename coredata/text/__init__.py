"""Text to tokens and back."""

from coredata.text.byte import ByteTokenizer
from coredata.text.gpt2 import GPT2BPETokenizer
from coredata.text.load import TOKENIZER_TYPES, TokenizerChoiceError, load_tokenizer
from coredata.text.native import TokenizerFileError
from coredata.text.null import NullTokenizer
from coredata.text.protocol import Tokenizer, require_eod
from coredata.text.shipped import demo_tokenizer
from coredata.text.special import SpecialTokenError
from coredata.text.surrogates import LoneSurrogateError, replace_lone_surrogates
from coredata.text.tokenizer_json import TokenizerJson

__all__ = [
    "TOKENIZER_TYPES",
    "ByteTokenizer",
    "GPT2BPETokenizer",
    "LoneSurrogateError",
    "NullTokenizer",
    "SpecialTokenError",
    "Tokenizer",
    "TokenizerChoiceError",
    "TokenizerFileError",
    "TokenizerJson",
    "demo_tokenizer",
    "load_tokenizer",
    "replace_lone_surrogates",
    "require_eod",
]
