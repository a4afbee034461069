"""Progress is for a terminal, and for stderr alone."""

import io
import sys

import pytest

from pytest_regcase.cli import progress as drawing
from pytest_regcase.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_there_is_nothing_to_tell() -> None:
    with progress() as tell:
        assert tell is None


def test_what_is_done_at_once_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(drawing, "AFTER_SECONDS", 1_000)
    with progress() as tell:
        assert tell is not None
        tell(1, 2, "a.json")
    assert terminal.getvalue() == ""


def test_a_terminal_is_told_and_left_clean(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(drawing, "AFTER_SECONDS", 0)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as tell:
        assert tell is not None
        tell(1, None, "a.json")
        tell(3, 7, "[bold]\x1b[31mb.json")
    shown = terminal.getvalue()
    assert "3/7" in shown
    assert "?bold??" in shown  # a log's name drives neither the terminal nor the markup
    assert capsys.readouterr().out == ""
