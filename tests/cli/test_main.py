import json
import os
import subprocess
import sys
from typing import Any

import click
import pytest

from pytest_regcase import cli
from pytest_regcase.errors import FileError, LedgerError, RegcaseError, UnknownName

HEAVY = ("pydantic", "scipy", "sqlalchemy", "h11", "tomlkit", "rich", "plotext", "pytest")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in cli.COMMANDS)])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from pytest_regcase.cli import main; code = main(sys.argv[1:]);"
        f"import json; print(json.dumps([code, [m for m in {HEAVY!r} if m in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [0, []]
    assert done.stderr == ""


def commands() -> list[str]:
    return cli.regcase.list_commands(click.Context(cli.regcase))


def test_the_commands_that_are_there_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"init", "seal", "schema", "fix"} <= set(commands()) <= set(cli.COMMANDS)
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in commands():
        assert f"  {name} " in text


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_each_help_has_an_example_and_fits(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name not in commands():
        pytest.skip(f"`regcase {name}` is not there yet")
    assert cli.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Example:\n" in text
    assert f"  regcase {name}" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


@pytest.mark.parametrize("arguments", [["no-such"], ["seal"], ["schema", "x"], ["--no-such"], ["fix"]])
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error: " in captured.err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UnknownName("Couldn't find it.\nKnown: none."), 2, "Couldn't find it.\nKnown: none.\n"),
        (FileError(["a:1: x", "a:2: y"]), 2, "a:1: x\na:2: y\n"),
        (LedgerError("Couldn't open the ledger."), 4, "Couldn't open the ledger.\n"),
        (OSError(28, "No space left on device", "f"), 4, "Couldn't finish: No space left on device: f.\n"),
        (ZeroDivisionError("x"), 4, "Couldn't finish: ZeroDivisionError: x.\n"),
        (KeyboardInterrupt(), 130, "\nInterrupted.\n"),
        (SystemExit(3), 3, ""),
    ],
)
def test_a_failure_is_one_block_and_its_exit_code(
    error: BaseException, code: int, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    from pytest_regcase.cli.schema import schema

    monkeypatch.setattr(schema, "callback", fails)
    assert cli.main(["schema"]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith(text)
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_a_traceback_is_there_for_who_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    from pytest_regcase.cli.schema import schema

    monkeypatch.setenv("REGCASE_TRACEBACK", "1")
    monkeypatch.setattr(schema, "callback", fails)
    assert cli.main(["schema"]) == 4
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_left_gets_no_traceback_and_no_green() -> None:
    code = "import sys; from pytest_regcase.cli import main; sys.exit(main(['schema']))"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_every_error_of_ours_has_an_exit_code() -> None:
    def kinds(error: type[RegcaseError]) -> list[type[RegcaseError]]:
        return [error, *(each for one in error.__subclasses__() for each in kinds(one))]

    assert {each.exit_code for each in kinds(RegcaseError)} <= {1, 2, 4}
