"""Packages that are installed and broken."""

import os

import pytest

from coredata.tools import doctor_checks as checks
from coredata.tools.doctor_imports import import_failures
from coredata.tools.main import main


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A function that puts a package with this program in front of the one installed."""

    def put(package: str, program: str) -> None:
        (tmp_path / f"{package}.py").write_text(program)

    monkeypatch.syspath_prepend(str(tmp_path))
    return put


def test_what_the_failure_says(broken):
    broken("one", "raise ImportError('libfast.so: undefined symbol: x')")
    broken("two", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    broken("three", "import os; os._exit(3)")
    broken("four", "print('all is well')")
    broken("five", "import one_that_is_not_there")
    assert import_failures(["one", "two", "one", "json", "three", "four", "five"]) == {
        "one": "ImportError: libfast.so: undefined symbol: x",
        "two": "it ends the process by SIGKILL",
        "three": "the process ends with code 3",
        "five": "ModuleNotFoundError: No module named 'one_that_is_not_there'",
    }
    assert import_failures([]) == {}


def test_one_that_never_ends_is_given_up(broken):
    broken("slow", "import time; time.sleep(1000)")
    assert import_failures(["slow"], longest=0.2) == {"slow": "it takes too long, and was given up"}


def test_the_modules_that_are_used_are_tried():
    assert import_failures(["pyarrow", "orjson", "gigatoken"]) == {}


def test_an_extra_that_cannot_be_imported_is_not_there(broken, monkeypatch):
    version = checks.installed("orjson")
    have = {"gigatoken": "1", "orjson": version, "jinja2": "3"}
    monkeypatch.setattr(checks, "installed", have.get)
    broken("orjson", "raise ImportError('orjson.so: wrong ELF class')")
    found = list(checks.check_extras())
    assert found[0] == checks.Finding("ok", "extras", "chat")
    assert [finding for finding in found if finding.what == "extra fast"] == [
        checks.Finding(
            "note",
            "extra fast",
            f"orjson {version} cannot be imported (ImportError: orjson.so: wrong ELF class)",
            "pip install --force-reinstall orjson",
        )
    ]


def test_a_target_whose_package_is_broken_is_a_fault(broken):
    broken("zstandard", "raise ImportError('no')")
    (found,) = checks.check_targets(["a.jsonl.zst"])
    assert (found.level, found.what) == ("fault", "a.jsonl.zst")
    assert "cannot be imported (ImportError: no)" in found.found


@pytest.mark.slow
def test_broken_packages_on_the_page(broken, capsys):
    broken("gigatoken", "raise ImportError('gigatoken.so: undefined symbol: y')")
    broken("tokenizers", "raise OSError('tokenizers.so: file too short')")
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    version = checks.installed("gigatoken")
    assert (
        f"note   extra fast: gigatoken {version} cannot be imported (ImportError: gigatoken.so: "
        "undefined symbol: y) → pip install --force-reinstall gigatoken" in told
    )
    assert f"fault  tokenizers: {checks.installed('tokenizers')} cannot be" in told
    extras = next(line for line in told.splitlines() if line.startswith("ok     extras: "))
    assert "fast" not in extras
    assert "parquet" in extras
    assert told.endswith(f"1 will fail.{os.linesep}")
