"""A chat template: from messages to text, and which of the text the assistant says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NoReturn, final

from coredata.text.chat_messages import plain


class ChatTemplateError(ValueError):
    """A chat template is broken, fails on a conversation, or refuses it."""


@dataclass(frozen=True)
class Rendered:
    """The text of a conversation.

    Attributes:
        text: all of it.
        marked: (start, stop) in characters of what `{% generation %}` blocks wrote, in order, none
            empty. Always empty for a template without such blocks.
    """

    text: str
    marked: tuple[tuple[int, int], ...] = ()


@final
@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template that writes conversations for one model.

    It runs in a sandbox: it cannot reach Python, files or the messages' originals. It can still
    take as much time and memory as it likes. Names and filters are those that published templates
    expect: `messages`, `tools`, `documents`, `add_generation_prompt`, `raise_exception`,
    `strftime_now`, `tojson` (without escapes), `{% break %}`, `{% continue %}`,
    `{% generation %}`.

    Attributes:
        source: the text of the template.
        name: where it comes from, for error texts.
        date: what `strftime_now` takes for now, as `2026-01-31` or `2026-01-31T12:00`. Without it
            a template that writes the date is refused: tokens must not depend on the day.
    """

    source: str
    name: str = "given"
    date: str | None = None
    _compiled: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": []}

    @property
    def marks_generation(self) -> bool:
        """Whether it has `{% generation %}` blocks.

        Raises:
            ChatTemplateError: it is not a template.
        """
        return self._template()[1]

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> Rendered:
        """The text of `messages`.

        Args:
            messages: one conversation. A key whose value is None is as good as missing.
            add_generation_prompt: end with what precedes the assistant's next turn.
            variables: other names for the template: `tools`, `documents`, `bos_token`,
                `enable_thinking`, …

        Raises:
            ChatTemplateError: it fails, or refuses these messages.
            ConversationError: a message holds something other than text, numbers, lists, mappings.
        """
        template, _ = self._template()
        names = {"tools": None, "documents": None, **plain(dict(variables or {}), "variables")}
        names["messages"] = [
            plain(dict(message), f"message {turn}") for turn, message in enumerate(messages)
        ]
        names["add_generation_prompt"] = add_generation_prompt
        from coredata.text import chat_sandbox as sandbox

        pieces: list[str] = []
        marked: list[tuple[int, int]] = []
        position = 0
        try:
            for piece in template.root_render_func(template.new_context(names)):
                pieces.append(piece)
                if isinstance(piece, sandbox.Generated) and piece:
                    marked.append((position, position + len(piece)))
                position += len(piece)
        except sandbox.FAILURES as error:
            self._fail(error, template, messages)
        return Rendered("".join(pieces), tuple(marked))

    def _template(self) -> tuple[Any, bool]:
        """The compiled template and whether it has generation blocks; compiled on first use."""
        if not self._compiled:
            self._compiled.append(self._compile())
        return self._compiled[0]

    def _compile(self) -> tuple[Any, bool]:
        try:
            from coredata.text import chat_sandbox as sandbox
        except ModuleNotFoundError as error:
            if error.name != "jinja2":
                raise
            raise ModuleNotFoundError(
                "chat templates need jinja2: pip install 'coredata[chat]'", name="jinja2"
            ) from None
        import jinja2

        environment = sandbox.environment(self.date)
        try:
            tree = environment.parse(self.source)
            template = environment.from_string(tree)
        except jinja2.TemplateSyntaxError as error:
            raise ChatTemplateError(
                f"chat template {self.name}, line {error.lineno}, is not Jinja: {error.message}"
            ) from None
        except SyntaxError as error:
            raise ChatTemplateError(
                f"chat template {self.name} cannot be compiled: {error.msg}; a break or continue "
                "cannot leave a {% generation %} block"
            ) from None
        line = sandbox.captured_generation(tree)
        if line is not None:
            raise ChatTemplateError(
                f"chat template {self.name}, line {line}: this {{% generation %}} block is inside "
                "a macro, a set, filter, call or named block, or a recursive loop, so that where "
                "its text ends up is unknown. Put the marks around the place where that text is "
                "written out."
            )
        return template, bool(sandbox.generation_blocks(tree))

    def _fail(
        self, error: Exception, template: Any, messages: Sequence[Mapping[str, Any]]
    ) -> NoReturn:
        from coredata.text import chat_sandbox as sandbox

        where = f"chat template {self.name}{_line(error.__traceback__, template)}"
        roles = ", ".join(str(message.get("role")) for message in messages) or "none"
        if isinstance(error, sandbox.UndatedError):
            raise ChatTemplateError(
                f"{where}, writes today's date into the text, and tokens must not depend on the "
                "day they are made. State one, for example date='2026-01-31'."
            ) from None
        if isinstance(error, sandbox.Refusal):
            hint = ""
            if messages and messages[0].get("role") == "system" and not messages[0].get("content"):
                hint = (
                    " The first is an empty system turn: if this template has no system role, use "
                    "a PromptFormat with system_role=False."
                )
            raise ChatTemplateError(
                f"{where}, refuses messages with the roles {roles}: {error}.{hint}"
            ) from None
        raise ChatTemplateError(
            f"{where}, fails on messages with the roles {roles}: {type(error).__name__}: {error}"
        ) from error


def _line(traceback: TracebackType | None, template: Any) -> str:
    """The innermost line of the template in a traceback, as `, line 7`."""
    found = ""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<template>":
            found = f", line {template.get_corresponding_lineno(traceback.tb_lineno)}"
        traceback = traceback.tb_next
    return found
