"""A tokenizer for conversations: a tokenizer, a chat template, and a rule for what counts."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, SupportsIndex, cast, final

import numpy as np

from coredata._typing import Int32, Int64
from coredata.text.chat_encode import OffsetTokenizer, encode_in_pieces, with_one_bos
from coredata.text.chat_formats import PromptFormat, find_prompt_format
from coredata.text.chat_guard import Disguise, any_of, refuse_special_tokens
from coredata.text.chat_messages import ConversationError, normalise
from coredata.text.chat_roles import require_all_roles
from coredata.text.chat_spans import spans_by_prefixes, tokens_in_spans
from coredata.text.chat_template import ChatTemplate, ChatTemplateError, Rendered
from coredata.text.conversation_protocol import IGNORED
from coredata.text.protocol import Tokenizer


@final
@dataclass(frozen=True)
class ChatTokenizer:
    """Messages to ids and targets; for plain text it is the tokenizer it is made of.

    What the assistant says is what the template's `{% generation %}` blocks write. For a template
    without such blocks the assistant's turns are found by rendering ever more of the conversation
    (see `spans_by_prefixes`): from after the header to the end of the turn.

    At most one BOS begins a conversation. The tokenizer adds none; the template writes it, and if
    message or template write it twice in a row at the very beginning, the second is left out. With
    `add_bos` it is put in front where the template writes none.

    Special tokens in the text of messages become the real thing, as in transformers, unless
    `special_tokens_in_messages` says otherwise. They never change what counts in the loss.

    Attributes:
        tokenizer: gives the ids; an `OffsetTokenizer`, such as a `TokenizerJson`.
        template: see `read_chat_template`; None if the prompt format brings its own.
        prompt_format: a `PromptFormat`, or the name of one that comes with the library:
            `assistant`, `default` or `identity`.
        variables: further names for the template, JSON values: `tools`, `documents`,
            `enable_thinking`, … The tokenizer's `bos_token`, `eos_token`, … are there already.
        special_tokens_in_messages: "keep" makes them real tokens, "refuse" raises, "spell" encodes
            them as ordinary text (cut in two after their first character). Only tokens marked
            special are meant.
        add_bos: put the tokenizer's BOS in front of a conversation that does not begin with it.

    Raises:
        ValueError: no template, an unknown prompt format, or a tokenizer that does not fit.
        ChatTemplateError: the template is broken.
    """

    tokenizer: Tokenizer
    template: ChatTemplate | None = None
    prompt_format: PromptFormat | str = "assistant"
    variables: Mapping[str, Any] = field(default_factory=dict, hash=False)
    special_tokens_in_messages: Literal["keep", "refuse", "spell"] = "keep"
    add_bos: bool = False
    _special: re.Pattern[str] = field(default=any_of([]), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tokenizer, OffsetTokenizer):
            raise ValueError(
                f"a {type(self.tokenizer).__name__} does not say which characters its tokens come "
                "from; chat templates need a TokenizerJson or a GPT2BPETokenizer"
            )
        if isinstance(self.prompt_format, str):
            object.__setattr__(self, "prompt_format", find_prompt_format(self.prompt_format))
        own = self.format.template
        if own is not None:
            date = None if self.template is None else self.template.date
            template = ChatTemplate(own, f"of prompt format {self.format.name!r}", date)
            object.__setattr__(self, "template", template)
        if self.template is None:
            raise ValueError(
                f"prompt format {self.format.name!r} needs a chat template: give the one that "
                "read_chat_template(directory) finds, or ChatTemplate(text)"
            )
        if self.add_bos and self.tokenizer.bos is None:
            raise ValueError("add_bos is set, but the tokenizer has no BOS; state it with bos=…")
        special = self.tokenizer.special_vocabulary
        object.__setattr__(self, "_special", any_of(special))
        for name, token in special.items():
            if self.tokenizer.encode(name) != [token]:
                raise ValueError(
                    f"the tokenizer does not read {name!r} as its special token {token}, so it "
                    "cannot read what a template writes; make it without split_special_tokens "
                    "and set special_tokens_in_messages='spell' here"
                )

    @property
    def format(self) -> PromptFormat:
        """The prompt format itself."""
        found = self.prompt_format
        return find_prompt_format(found) if isinstance(found, str) else found

    def tokenize_conversation(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = False
    ) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, " tokens"]]:
        """Ids of one conversation, and targets: the id where the loss counts, else -100.

        No messages give no tokens.

        Args:
            messages: mappings with `role`, `content`, and whatever else the template reads.
            add_generation_prompt: end with the header of the assistant's next turn.

        Raises:
            ConversationError: an empty assistant turn, a message without role, content that is
                nothing a template could write, a special token that is to be refused.
            ChatTemplateError: the template fails on the conversation or refuses it, leaves out a
                role, or does not show which text is the assistant's.
            LoneSurrogateError: the text has no UTF-8 form.
        """
        kept = self._without_system(normalise(messages))
        if not kept:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if self.special_tokens_in_messages == "refuse":
            refuse_special_tokens(kept, self._special)
        disguise = Disguise({})
        if self.special_tokens_in_messages == "spell":
            used = self._template().source + json.dumps(dict(self.variables), ensure_ascii=False)
            disguise = Disguise.of(kept, self._special, used)
            kept = disguise.put_on(kept)
        rendered = self._render(kept, add_generation_prompt)

        def render(messages: Sequence[Mapping[str, Any]]) -> str:
            return self._text(messages, add_generation_prompt)

        require_all_roles(render, kept, rendered.text, self._template().name)
        text, cuts = disguise.take_off(rendered.text)
        ids, offsets = encode_in_pieces(cast(OffsetTokenizer, self.tokenizer), text, cuts)
        if self.format.counts == "all":
            targets = ids.copy()
        else:
            spans = self._spans(kept, rendered)
            targets = np.where(tokens_in_spans(offsets, spans), ids, np.int64(IGNORED))
        return with_one_bos(ids, targets, self.tokenizer.bos, self.add_bos)

    def render(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = False
    ) -> str:
        """The text that `tokenize_conversation` encodes.

        Raises:
            ConversationError: as there.
            ChatTemplateError: the template fails on the conversation or refuses it.
        """
        kept = self._without_system(normalise(messages))
        return self._text(kept, add_generation_prompt)

    @property
    def content_hash(self) -> str:
        """SHA-256 of all that decides which ids and targets come out."""
        parts = [self.tokenizer.content_hash, self._choices()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def unique_identifiers(self) -> dict[str, Any]:
        """What goes into the names of index caches: the tokenizer's, and all that is chosen here.

        Indices over conversations depend on neither ids nor template, but what a cache is called
        should say so when data were made in another way.
        """
        chosen = json.dumps(self._choices(), sort_keys=True).encode()
        return {
            **self.tokenizer.unique_identifiers,
            "chat": {
                "prompt_format": self.format.name,
                "content_hash": hashlib.sha256(chosen).hexdigest(),
            },
        }

    @property
    def eod(self) -> int | None:
        """As the tokenizer's."""
        return self.tokenizer.eod

    @property
    def eos(self) -> int | None:
        """As the tokenizer's."""
        return self.tokenizer.eos

    @property
    def pad(self) -> int | None:
        """As the tokenizer's."""
        return self.tokenizer.pad

    @property
    def bos(self) -> int | None:
        """As the tokenizer's."""
        return self.tokenizer.bos

    @property
    def vocab_size(self) -> int:
        """As the tokenizer's."""
        return self.tokenizer.vocab_size

    @property
    def special_tokens_dict(self) -> Mapping[str, int]:
        """As the tokenizer's."""
        return self.tokenizer.special_tokens_dict

    def encode(self, text: str) -> list[int]:
        """As the tokenizer's: plain text, no template."""
        return self.tokenizer.encode(text)

    def encode_batch(
        self, texts: Sequence[str]
    ) -> tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " texts"]]:
        """As the tokenizer's: plain text, no template."""
        return self.tokenizer.encode_batch(texts)

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """As the tokenizer's."""
        return self.tokenizer.decode(ids)

    def token_id(self, name: str) -> int | None:
        """As the tokenizer's."""
        return self.tokenizer.token_id(name)

    def _choices(self) -> dict[str, Any]:
        return {
            "template": self._template().source,
            "date": self._template().date,
            "counts": self.format.counts,
            "system_role": self.format.system_role,
            "variables": dict(self.variables),
            "special_tokens_in_messages": self.special_tokens_in_messages,
            "add_bos": self.add_bos,
        }

    def _template(self) -> ChatTemplate:
        if self.template is None:
            raise ValueError(f"prompt format {self.format.name!r} needs a chat template")
        return self.template

    def _without_system(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages, less an empty system turn that the format has no place for."""
        if self.format.system_role or not messages or messages[0]["role"] != "system":
            return messages
        if messages[0].get("content"):
            raise ConversationError(
                f"message 0 is a system turn with text, but prompt format {self.format.name!r} has "
                "no system role; put the text into the first user turn"
            )
        return messages[1:]

    def _render(
        self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool
    ) -> Rendered:
        special = self.tokenizer.special_tokens_dict.items()
        names = {role: self.tokenizer.decode([token]) for role, token in special}
        return self._template().render(
            messages,
            add_generation_prompt=add_generation_prompt,
            variables={**names, **self.variables},
        )

    def _text(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool) -> str:
        return self._render(messages, add_generation_prompt).text

    def _spans(
        self, messages: Sequence[Mapping[str, Any]], rendered: Rendered
    ) -> Sequence[tuple[int, int]]:
        template = self._template()
        turns = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
        if not template.marks_generation:
            return spans_by_prefixes(self._text, messages, rendered.text, template.name)
        if turns and not rendered.marked:
            raise ChatTemplateError(
                f"chat template {template.name} has {{% generation %}} marks, but none around "
                f"message {turns[0]}, an assistant turn; nothing of it would count in the loss"
            )
        return rendered.marked
