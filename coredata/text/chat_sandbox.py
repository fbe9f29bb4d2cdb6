"""Where chat templates run: Jinja's immutable sandbox with the names that templates expect.

Imported only when a template is compiled, because it needs jinja2.
"""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

FAILURES = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What a template that goes wrong may raise while it runs."""


class Refusal(jinja2.TemplateError):
    """A template called `raise_exception`."""


class UndatedError(jinja2.TemplateError):
    """A template asks for the date and none was stated."""


class Generated(str):
    """What a `{% generation %}` block wrote.

    The block hands its text to the template's output as one piece of this type, so a span is where
    such a piece lies in the output. Nothing in the text says so, and no text can pretend to it.
    """

    __slots__ = ()


class _Generation(Extension):
    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.CallBlock:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        block = nodes.CallBlock(self.call_method("_generated"), [], [], body)
        block.set_lineno(line)
        return block

    def _generated(self, caller: Callable[[], str]) -> Generated:
        return Generated(caller())


def environment(date: str | None) -> jinja2.Environment:
    """The sandbox; `date` (ISO 8601) is what `strftime_now` takes for now."""

    def strftime_now(format: str) -> str:
        if date is None:
            raise UndatedError("it writes today's date")
        return datetime.fromisoformat(date).strftime(format)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
    )
    made.filters["tojson"] = _tojson
    made.globals["raise_exception"] = _raise_exception
    made.globals["strftime_now"] = strftime_now
    made.globals["dict"] = _dict
    return made


def generation_blocks(tree: nodes.Template) -> list[int]:
    """The lines of all `{% generation %}` blocks."""
    return [block.lineno for block in _blocks(tree)]


def captured_generation(tree: nodes.Template) -> int | None:
    """The line of a `{% generation %}` block whose output does not go straight to the result.

    In a macro, a `{% set %}` block, a filter, a recursive loop or a named block, what is written is
    a value first; where it ends up, if anywhere, cannot be told.
    """
    kinds = (nodes.Macro, nodes.AssignBlock, nodes.FilterBlock, nodes.CallBlock, nodes.For)
    for holder in tree.find_all((*kinds, nodes.Block)):
        if isinstance(holder, nodes.For) and not holder.recursive:
            continue
        if isinstance(holder, nodes.CallBlock) and _is_generation(holder):
            continue
        for block in _blocks(holder):
            return block.lineno
    return None


def _blocks(tree: nodes.Node) -> Iterator[nodes.CallBlock]:
    return (block for block in tree.find_all(nodes.CallBlock) if _is_generation(block))


def _is_generation(block: nodes.CallBlock) -> bool:
    method = block.call.node
    return (
        isinstance(method, nodes.ExtensionAttribute) and method.identifier == _Generation.identifier
    )


def _raise_exception(message: object) -> None:
    raise Refusal(str(message))


def _dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    """`dict` without its class, through which a template could change what it was given."""
    return dict(*args, **kwargs)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is meant for a model: no HTML escapes, no ASCII escapes."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=tuple(separators) if separators is not None else None,
        sort_keys=sort_keys,
    )
