"""Text to tokens and back."""

from coredata.text.byte import ByteTokenizer
from coredata.text.byte_conversation import ByteConversationTokenizer
from coredata.text.chat import ChatTokenizer
from coredata.text.chat_encode import OffsetTokenizer
from coredata.text.chat_files import read_chat_template
from coredata.text.chat_formats import PROMPT_FORMATS, PromptFormat, find_prompt_format
from coredata.text.chat_messages import ConversationError
from coredata.text.chat_template import ChatTemplate, ChatTemplateError, Rendered
from coredata.text.conversation_protocol import ConversationTokenizer
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
    "PROMPT_FORMATS",
    "TOKENIZER_TYPES",
    "ByteConversationTokenizer",
    "ByteTokenizer",
    "ChatTemplate",
    "ChatTemplateError",
    "ChatTokenizer",
    "ConversationError",
    "ConversationTokenizer",
    "GPT2BPETokenizer",
    "LoneSurrogateError",
    "NullTokenizer",
    "OffsetTokenizer",
    "PromptFormat",
    "Rendered",
    "SpecialTokenError",
    "Tokenizer",
    "TokenizerChoiceError",
    "TokenizerFileError",
    "TokenizerJson",
    "demo_tokenizer",
    "find_prompt_format",
    "load_tokenizer",
    "read_chat_template",
    "replace_lone_surrogates",
    "require_eod",
]
