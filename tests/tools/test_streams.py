"""What becomes of a command's output when its streams are closed, cut off or full."""

import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from coredata.tools import main as tools_main
from coredata.tools.main import main

ROOT = Path(__file__).parents[2]


def shell(script, *arguments):
    """Runs bash; $COREDATA is the command."""
    command = f"{shlex.quote(sys.executable)} -m coredata"
    return subprocess.run(
        ["bash", "-c", script.replace("COREDATA", command), "bash", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def damaged(write_pair):
    prefix = write_pair("broken")
    with open(f"{prefix}.bin", "ab") as file:
        file.write(b"more")
    return prefix


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_change_the_exit_code(closed, write_pair, damaged):
    whole = write_pair("whole")
    script = (
        f'COREDATA verify "$1" {closed}; a=$?; COREDATA verify "$2" {closed}; b=$?; '
        f'COREDATA inspect "$1" {closed}; c=$?; COREDATA verify /none {closed}; '
        'echo "codes $a $b $c $?"'
    )
    done = shell(script, whole, damaged)
    assert done.stdout.splitlines()[-1] == "codes 0 1 0 2"
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.slow
def test_a_reader_that_leaves_does_not_look_like_damage(write_pair):
    prefixes = [write_pair(f"pair{k}") for k in range(3)]
    script = 'COREDATA verify "$@" | true; echo ${PIPESTATUS[0]}'
    done = shell(script, *prefixes)
    assert done.stdout == "141\n"
    assert done.stderr == ""
    done = shell('COREDATA verify --json "$@" | true; echo ${PIPESTATUS[0]}', *prefixes)
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_standard_output_is_named(unbuffered, write_pair, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    done = shell('COREDATA verify "$1" > /dev/full; echo $?', write_pair("whole"))
    assert done.stdout == "2\n"
    assert done.stderr.endswith(
        "coredata verify: [Errno 28] No space left on device, writing standard output\n"
    )
    assert done.stderr.count("\n") == 1


@pytest.fixture
def merge_that(monkeypatch):
    """Replaces what `coredata merge` does."""

    def put(run):
        real = tools_main.import_module

        def load(name):
            module = real(name)
            if name.endswith(".merge"):
                monkeypatch.setattr(module, "run", run)
            return module

        monkeypatch.setattr(tools_main, "import_module", load)

    return put


def test_a_full_disk_is_named_by_the_flag(merge_that, capsys):
    def run(args):
        raise OSError(28, "No space left on device")

    merge_that(run)
    assert main(["merge", "--input", "in", "--output-prefix", "out/all"]) == 2
    assert capsys.readouterr().err == (
        "coredata merge: [Errno 28] No space left on device, writing to --output-prefix out/all\n"
    )


def test_warnings_are_one_line(merge_that):
    told = []

    def run(args):
        warning = UserWarning("a cache\n is damaged")
        told.append(warnings.formatwarning(warning, UserWarning, "index_cache.py", 105))
        return 0

    before = warnings.formatwarning
    merge_that(run)
    assert main(["merge", "--input", "in", "--output-prefix", "out/all"]) == 0
    assert told == ["coredata merge: warning: a cache is damaged\n"]
    assert warnings.formatwarning is before


def test_values_that_look_like_flags(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["prepare-cache", "--split", "-1,1,1"])
    told = capsys.readouterr().err
    assert "a value that begins with - is written --split=VALUE" in told
