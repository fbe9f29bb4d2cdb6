import types

import pytest

from coredata.tools import main as tools_main
from coredata.tools.main import COMMANDS, main
from coredata.tools.unknown_flags import add_unknown_flags_flag, unknown_flags


@pytest.fixture
def command(monkeypatch):
    """Puts a command of a given behaviour in the place of `merge`."""

    def put(run, tolerant=False):
        def add_arguments(parser):
            parser.add_argument("--data-path", nargs="*")
            if tolerant:
                add_unknown_flags_flag(parser)

        module = types.SimpleNamespace(HELP="does", add_arguments=add_arguments, run=run)
        real = tools_main.import_module
        monkeypatch.setattr(
            tools_main,
            "import_module",
            lambda name: module if name.endswith(".merge") else real(name),
        )

    return put


def test_every_command_has_help(capsys):
    for name in COMMANDS:
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        assert f"usage: coredata {name}" in capsys.readouterr().out


def test_exit_codes_are_documented(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "Exit code: 0 done, 1 problems were found, 2 it could not be done" in told


def test_codes(command, capsys):
    command(lambda args: 1)
    assert main(["merge"]) == 1

    def raises(error):
        def run(args):
            raise error

        return run

    for error, code, text in (
        (ValueError("bad flag"), 2, "coredata merge: bad flag\n"),
        (KeyError("no such key"), 2, "coredata merge: no such key\n"),
        (FileNotFoundError("no file"), 2, "coredata merge: no file\n"),
        (ImportError("an extra"), 2, "coredata merge: an extra\n"),
        (
            MemoryError("Unable to allocate 8.0 EiB"),
            2,
            "coredata merge: not enough memory: Unable to allocate 8.0 EiB. Ask for fewer samples "
            "or smaller sizes\n",
        ),
        (KeyboardInterrupt(), 130, "coredata merge: interrupted\n"),
    ):
        command(raises(error))
        assert main(["merge"]) == code
        assert capsys.readouterr().err == text


def test_tracebacks_on_demand(command, monkeypatch):
    def run(args):
        raise ValueError("bad flag")

    command(run)
    monkeypatch.setenv("COREDATA_TRACEBACK", "1")
    with pytest.raises(ValueError, match="bad flag"):
        main(["merge"])


def test_an_unknown_flag(command, capsys):
    command(lambda args: 0)
    assert main(["merge", "--dat-path", "x"]) == 2
    told = capsys.readouterr().err
    assert told == (
        "coredata merge: unknown: --dat-path x (did you mean --data-path?). See coredata merge "
        "--help\n"
    )


def test_a_pasted_script_is_tolerated_on_demand_only(command, capsys):
    command(lambda args: 0, tolerant=True)
    pasted = ["merge", "--data-path", "a", "b", "--bf16", "--lr", "3e-4"]
    assert main(pasted) == 2
    told = capsys.readouterr().err
    assert told.endswith(
        "unknown: --bf16, --lr 3e-4. To paste a training script's flags, add "
        "--ignore-unknown-flags. See coredata merge --help\n"
    )
    assert main([*pasted, "--ignore-unknown-flags"]) == 0
    assert capsys.readouterr().err == (
        "coredata merge: passed over, as not about data: --bf16, --lr 3e-4\n"
    )


def test_what_looks_like_a_misspelt_flag_is_said():
    unknown = unknown_flags(
        ["--tensor-model-parallel-size", "8", "--sead=3"], ["--seed", "--data-path"]
    )
    assert unknown.note() == (
        "passed over, as not about data: --tensor-model-parallel-size 8, --sead=3. "
        "Is one misspelt? --sead looks like --seed"
    )
    assert unknown_flags(["--save-interval", "5"], ["--eval-interval"]).doubts == ()
    assert unknown_flags(["word"], ["--seed"]).refusal(tolerable=False) == "unknown: word"


def test_errors_of_parsing_are_one_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["preproces"])
    told = capsys.readouterr().err
    assert told.endswith("; did you mean preprocess? (see coredata --help)\n")
    with pytest.raises(SystemExit, match="2"):
        main(["prepare-cache", "--seq-length", "x"])
    told += capsys.readouterr().err
    assert told.count("\n") == 2
    assert told.endswith("invalid int value: 'x' (see coredata prepare-cache --help)\n")
