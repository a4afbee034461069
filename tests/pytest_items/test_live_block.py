import io

import pytest
from _pytest._io import TerminalWriter

from pytest_regcase.pytest_items.live_block import LiveBlock
from tests.pytest_items.small_terminal import SmallTerminal


class Screen:
    """pytest's own writer, the block below what it writes, and the terminal that shows both."""

    def __init__(self, columns: int) -> None:
        self.file = io.StringIO()
        self.writer = TerminalWriter(self.file)
        self.writer.fullwidth = columns
        self.block = LiveBlock(self.writer)
        self._columns = columns

    @property
    def lines(self) -> list[str]:
        terminal = SmallTerminal(self._columns)
        terminal.take(self.file.getvalue().replace("\n", "\r\n"))
        return terminal.lines


@pytest.fixture
def screen() -> Screen:
    return Screen(40)


def test_lines_stand_below_what_was_written_and_are_replaced(screen: Screen) -> None:
    screen.writer.write("cases/a/case.toml ")
    screen.block.draw(["a: 1 of 3", "b: 2 of 9"])
    assert screen.lines == ["cases/a/case.toml", "a: 1 of 3", "b: 2 of 9"]
    screen.block.draw(["a: 2 of 3"])
    assert screen.lines == ["cases/a/case.toml", "a: 2 of 3"]


def test_whoever_writes_writes_as_if_there_were_no_lines(screen: Screen) -> None:
    screen.writer.write("cases/a/case.toml ")
    screen.block.draw(["a: 1 of 3", "b: 2 of 9"])
    screen.writer.write(".", green=True)
    assert screen.lines == ["cases/a/case.toml ."]
    screen.block.draw(["a: 2 of 3"])
    screen.writer.write("F")
    screen.writer.line()
    assert screen.lines == ["cases/a/case.toml .F"]


def test_at_the_start_of_a_line_the_lines_stand_there(screen: Screen) -> None:
    screen.writer.line("2 workers [8 items]")
    screen.block.draw(["a: 1 of 3"])
    assert screen.lines == ["2 workers [8 items]", "a: 1 of 3"]
    screen.writer.write("..")
    assert screen.lines == ["2 workers [8 items]", ".."]


def test_behind_a_line_that_the_terminal_wrapped_too(screen: Screen) -> None:
    long = "cases/" + "x" * 50 + "/case.toml "
    screen.writer.write(long)
    screen.block.draw(["a: 1 of 3"])
    assert screen.lines == [long[:40], long[40:].rstrip(), "a: 1 of 3"]
    screen.writer.write(".")
    assert screen.lines == [long[:40], long[40:] + "."]


def test_a_line_is_cut_before_the_terminal_would_wrap_it(screen: Screen) -> None:
    screen.block.draw(["x" * 100, "y"])
    assert screen.lines == ["x" * 39, "y"]
    screen.block.draw([])
    assert screen.lines == []


def test_in_the_end_the_terminal_and_the_writer_are_as_they_were(screen: Screen) -> None:
    screen.writer.write("cases/a/case.toml ")
    screen.block.draw(["a: 1 of 3"])
    screen.block.close()
    assert screen.lines == ["cases/a/case.toml"]
    assert "write_raw" not in vars(screen.writer)


def test_an_interrupt_as_soon_as_somebody_sees_the_lines(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come between the bytes and our own next step."""

    def flush() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    screen.writer.write("cases/a/case.toml ")
    monkeypatch.setattr(screen.file, "flush", flush)
    with pytest.raises(KeyboardInterrupt):
        screen.block.draw(["a: 1 of 3", "b: 2 of 9"])
    assert screen.lines == ["cases/a/case.toml", "a: 1 of 3", "b: 2 of 9"]
    screen.block.close()
    assert screen.lines == ["cases/a/case.toml"]
