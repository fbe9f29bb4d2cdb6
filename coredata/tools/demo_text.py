"""Text that every machine with Python has: the library's own sources, and its prose."""

import ast
import hashlib
import json
import sysconfig
import tokenize
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

_NOT_THE_LIBRARY = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
_SHORTEST_DOCSTRING = 80
LEAST_DOCUMENTS = 100

Document = tuple[str, str]
"""A name that tells a document from all others, and its text."""

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def library_sources(directory: Path | None = None) -> Iterator[Document]:
    """The standard library's modules, its tests left out.

    Args:
        directory: another directory than that of the standard library.

    Raises:
        FileNotFoundError: the directory has no sources (some installations have only bytecode).
    """
    root = Path(sysconfig.get_path("stdlib")) if directory is None else directory
    found = False
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if not _NOT_THE_LIBRARY.isdisjoint(inside.parts):
            continue
        try:
            with tokenize.open(path) as file:
                text = file.read()
        except (SyntaxError, UnicodeDecodeError):
            continue
        found = True
        yield inside.as_posix(), text
    if not found:
        raise FileNotFoundError(
            f"{root} has no Python sources, which the demo takes as its text; use a Python that "
            "comes with the source of its library, such as python.org's or your distribution's "
            "python3 package"
        )


def library_prose(sources: Iterable[Document]) -> Iterator[Document]:
    """Python's help topics, and the docstrings of modules, classes and functions.

    Args:
        sources: modules as `library_sources` gives them.
    """
    yield from _topics()
    for name, text in sources:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for node in _definitions(tree):
            prose = ast.get_docstring(node)
            if prose and len(prose) >= _SHORTEST_DOCSTRING:
                line = 1 if isinstance(node, ast.Module) else node.lineno
                yield f"{name}:{line}", prose


def _definitions(node: _Documented) -> Iterator[_Documented]:
    """A module, its classes and functions, and those of its classes."""
    yield node
    for inner in node.body:
        if isinstance(inner, ast.ClassDef):
            yield from _definitions(inner)
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inner


def _topics() -> Iterator[Document]:
    try:
        topics = import_module("pydoc_data.topics").topics
    except ModuleNotFoundError:  # Some distributions package it apart.
        return
    for name, text in sorted(topics.items()):
        yield f"topic {name}", text


def take(documents: Iterable[Document], size: int) -> list[Document]:
    """Documents of at most `size` bytes together, always the same, from everywhere in the input.

    They are put in the order of a hash of their names, and the first are taken. Empty ones are
    passed over, and those larger than a hundredth of `size`: so there are at least a hundred, and
    a hundredth of them is one.

    Raises:
        ValueError: there are fewer than a hundred.
    """
    sized = [(name, text, len(text.encode("utf-8", "replace"))) for name, text in documents]
    fit = [document for document in sized if 0 < document[2] <= size // LEAST_DOCUMENTS]
    taken: list[Document] = []
    left = size
    for name, text, length in sorted(fit, key=lambda document: _hash(document[0])):
        left -= length
        if left < 0:
            break
        taken.append((name, text))
    if len(taken) < LEAST_DOCUMENTS:
        raise ValueError(
            f"a size of {size / 1e6} MB leaves {len(taken)} documents, since none may be larger "
            f"than a hundredth of it, and {LEAST_DOCUMENTS} are needed; give --size 8"
        )
    return taken


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def json_lines(documents: Iterable[Document]) -> Iterator[bytes]:
    """Lines of JSON Lines, `{"name": …, "text": …}`."""
    for name, text in documents:
        yield json.dumps({"name": name, "text": text}).encode() + b"\n"
