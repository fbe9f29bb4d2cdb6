import json
import sys

import pytest

from coredata.tools.demo_text import json_lines, library_prose, library_sources, take


@pytest.fixture
def library(tmp_path):
    files = {
        "abc.py": '"""' + "A module about letters. " * 5 + '"""\n\n\ndef f():\n    """Short."""\n',
        "pkg/inner.py": (
            "class C:\n"
            f'    """{"What the class is for. " * 5}"""\n\n'
            "    async def m(self):\n"
            f'        """{"What the method does. " * 5}"""\n'
        ),
        "test/test_abc.py": "x = 1\n",
        "site-packages/other.py": "x = 1\n",
        "latin.py": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n",
        "broken_bytes.py": b"name = '\xe9'\n",
        "broken_later.py": b"# 1\n# 2\n# 3\nname = '\xe9'\n",
        "broken_syntax.py": "def\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def test_sources_without_tests_and_without_what_is_no_text(library):
    found = dict(library_sources(library))
    assert list(found) == ["abc.py", "broken_syntax.py", "latin.py", "pkg/inner.py"]
    assert "'é'" in found["latin.py"]


def test_a_library_without_sources(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no Python sources, which the demo takes"):
        list(library_sources(tmp_path))


def test_prose_is_topics_and_docstrings_that_are_long_enough(library):
    found = dict(library_prose(library_sources(library)))
    docstrings = {name: text for name, text in found.items() if not name.startswith("topic ")}
    assert list(docstrings) == ["abc.py:1", "pkg/inner.py:1", "pkg/inner.py:4"]
    assert docstrings["pkg/inner.py:4"].startswith("What the method does.")
    assert len(found["topic assert"]) > 100


def test_prose_without_the_topics(library, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    assert len(list(library_prose(library_sources(library)))) == 3


def test_the_real_library_has_enough_of_both():
    sources = list(library_sources())
    assert len(sources) > 300
    assert sum(len(text) for _, text in sources) > 5_000_000
    prose = list(library_prose(sources[:50]))
    assert len(prose) > 200


def test_taking_is_bounded_and_repeatable():
    documents = [(f"d{k}", "x" * 10) for k in range(1000)]
    taken = take(documents, 1234)
    assert len(taken) == 123
    assert taken == take(reversed(documents), 1234)
    assert taken == take(documents, 5000)[:123]
    assert taken != documents[:123]


def test_taking_passes_over_what_is_empty_or_large():
    documents = [(f"d{k}", "é" * (k % 7)) for k in range(2000)]
    taken = take(documents, 1000)
    assert {len(text) for _, text in taken} == {1, 2, 3, 4, 5}
    assert len(taken) >= 100


def test_taking_too_little():
    with pytest.raises(ValueError, match=r"size of 0.001 MB leaves 7 documents.*give --size 8"):
        take([(f"d{k}", "x") for k in range(7)], 1000)


def test_json_lines():
    lines = list(json_lines([("a", "é\n"), ("b", "")]))
    assert all(line.endswith(b"}\n") and line.count(b"\n") == 1 for line in lines)
    assert [json.loads(line) for line in lines] == [
        {"name": "a", "text": "é\n"},
        {"name": "b", "text": ""},
    ]
