"""What a run says while it runs: on a terminal, without one, under -q, and when it is interrupted."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pytest_regcase.pytest_items.progress import _fitted, _time
from tests.plugin.gate_project import WITHOUT_OTHERS, GateProject
from tests.pytest_items.small_terminal import SmallTerminal

LONG = "a-case-with-a-very-long-name-that-does-not-fit-into-any-line-of-a-terminal"

UNFINISHED = re.compile(r"\x1b(\[[0-9;?]*)?")
"""A sequence of which the rest is to come."""


@dataclass
class Seen:
    """What a terminal of 80 columns showed, and in the end."""

    frames: list[list[str]]
    """The lines before each time that something was erased, and in the end."""
    code: int

    @property
    def last(self) -> list[str]:
        return self.frames[-1]

    def showed(self, line: str) -> bool:
        """Say whether a screen had that line, with ``T`` in the place of how long it takes yet."""
        return any(line in _untimed(row) for each in self.frames for row in each)


def on_a_terminal(project: GateProject, *args: str, interrupt_at: str | None = None) -> Seen:
    """Run pytest on a terminal; press Ctrl-C where `interrupt_at` stands there."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - becomes the other process
        os.chdir(project.root)
        os.environ.update(TERM="xterm", PYTHONPATH=os.pathsep.join(sys.path))
        for name in ("CI", "GITHUB_ACTIONS", "COLUMNS", "NO_COLOR"):
            os.environ.pop(name, None)
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *WITHOUT_OTHERS, "--regcase", *args])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    screen, frames, rest = SmallTerminal(), [], ""
    for text in _read(terminal):
        # What is read at once may be a part of a sequence, or all that was drawn and erased meanwhile.
        *whole, rest = re.split(r"(?=\x1b)", rest + text)
        if not UNFINISHED.fullmatch(rest):
            whole, rest = [*whole, rest], ""
        for each in whole:
            screen.take(each)
            frames.append(screen.lines)
        if interrupt_at is not None and any(interrupt_at in each for each in screen.lines):
            os.write(terminal, b"\x03")
            interrupt_at = None
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return Seen(frames, os.waitstatus_to_exitcode(status))


def _read(terminal: int) -> Iterator[str]:
    while True:
        try:
            content = os.read(terminal, 65536)
        except OSError:  # the other side is gone
            return
        if not content:
            return
        yield content.decode()


def naps(project: GateProject, scenario: str) -> None:
    """Make attempts of that scenario wait until somebody interrupts them."""
    text = (project.root / "conftest.py").read_text()
    wait = f'    if plan.key.scenario == "{scenario}":\n        time.sleep(20)\n'
    (project.root / "conftest.py").write_text(text.replace("    _do(verdict)\n", wait + "    _do(verdict)\n", 1))


def test_on_a_terminal_a_line_says_what_runs_below_what_pytest_prints(project: GateProject) -> None:
    project.add_case("case-one", ["stall-v1"])
    project.script({"case-one::stall-v1": ["not-recovered", "recovered", "recovered"]})
    seen = on_a_terminal(project)
    assert seen.code == 0
    assert seen.showed("case-one: 1 of 2, control, at most 10 min")
    assert seen.showed("case-one: 2 of 2, stall-v1, at most 10 min")
    assert seen.showed("case-one: 2 of 2, stall-v1, try 3, at most 10 min, about T left")
    assert not any(" of 2, " in line for line in seen.last)
    (dots,) = (line for line in seen.last if line.startswith("cases/case-one/case.toml"))
    assert dots.split()[1:] == [".RR.", "[100%]"]


def test_under_xdist_each_running_case_has_a_line(project: GateProject) -> None:
    for name in ("case-one", "case-two"):
        project.add_case(name, ["stall-v1"])
    seen = on_a_terminal(project, "-n", "2", "-v")
    assert seen.code == 0
    assert any(line.startswith(("case-one: ", "case-two: ")) for frame in seen.frames for line in frame)
    assert not any(" of 2, " in line for line in seen.last)
    assert sum("PASSED cases/case-" in line for line in seen.last) == 4


def test_ctrl_c_leaves_a_clean_terminal(project: GateProject) -> None:
    project.add_case("case-one", ["stall-v1"])
    naps(project, "stall-v1")
    seen = on_a_terminal(project, interrupt_at="case-one: 2 of 2, stall-v1, at most 10 min")
    assert seen.code == 2
    # The terminal's own "^C" may stay where it met no line of ours.
    assert not any(" of 2, stall-v1" in line for line in seen.last)
    assert any("KeyboardInterrupt" in line for line in seen.last)


def test_without_a_terminal_lines_stand_in_the_place_of_letters(project: GateProject) -> None:
    project.add_case("case-one", ["stall-v1"])
    project.script({"case-one::stall-v1": ["not-recovered", "recovered", "recovered"]})
    out = project.run().outlines
    start = next(number for number, line in enumerate(out) if line.startswith("case-one: "))
    assert [_untimed(line) for line in out[start : start + 6]] == [
        "case-one: 1 of 2, control, at most 10 min",
        "case-one: 1 of 2, control, finished after T",
        "case-one: 2 of 2, stall-v1, at most 10 min",
        "case-one: 2 of 2, stall-v1, not-recovered after T, another try follows",
        "case-one: 2 of 2, stall-v1, try 2, recovered after T, another try follows",
        "case-one: 2 of 2, stall-v1, try 3, recovered after T",
    ]
    assert not any("case.toml" in line for line in out)


def test_what_took_short_has_no_line_at_its_start_and_says_what_is_left(project: GateProject) -> None:
    for name in ("case-one", "case-two"):
        project.add_case(name, ["stall-v1"])
    out = [_untimed(line) for line in project.run().outlines if line.startswith("case-two: ")]
    assert out == [
        "case-two: 1 of 2, control, finished after T, about T left",
        "case-two: 2 of 2, stall-v1, recovered after T",
    ]


def test_live_runs_say_how_often_the_symptom_came_back(project: GateProject) -> None:
    project.add_case("case-one", [])
    project.claim_fix("case-one")
    project.script({"case-one::live": ["clean", "recurred"]})
    out = project.run("--regcase-profile=nightly", "--regcase-live=3").outlines
    told = [_untimed(line) for line in out if line.startswith("case-one: ")]
    assert told == [
        "case-one: 1 of 4, control, at most 10 min, 0 recurred",
        "case-one: 1 of 4, control, finished after T, 0 recurred",
        "case-one: 2 of 4, live run 1, at most 10 min, 0 recurred",
        "case-one: 2 of 4, live run 1, clean after T, about T left, 0 recurred",
        "case-one: 3 of 4, live run 2, recurred after T, about T left, 1 recurred",
        "case-one: 4 of 4, live run 3, skipped after T, 1 recurred",
    ]


def test_what_an_option_leaves_out_is_not_waited_for(project: GateProject) -> None:
    project.add_case("case-one", ["stall-v1", "killed-v1"])
    out = project.run("-k", "control").outlines
    assert "case-one: 1 of 1, control, at most 10 min" in out


def test_ordinary_tests_keep_their_letters(project: GateProject) -> None:
    project.add_case("case-one", [])
    (project.root / "test_plain.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    out = project.run("--regcase-with-tests").outlines
    assert any(line.startswith("test_plain.py ..") for line in out)
    assert "case-one: 1 of 1, control, at most 10 min" in out


def test_a_marked_function_is_named_with_its_case(project: GateProject) -> None:
    project.add_case("case-one", ["stall-v1"])
    marked = '@pytest.mark.regcase("case-one")\ndef test_mine(regcase): pass\n'
    (project.root / "test_agent.py").write_text(f"import pytest\n{marked}")
    told = [_untimed(line) for line in project.run("test_agent.py").outlines if line.startswith("case-one ")]
    assert [each for each in told if "after" in each] == [
        "case-one (test_mine): 1 of 2, control, finished after T",
        "case-one (test_mine): 2 of 2, stall-v1, recovered after T",
    ]


def test_verbose_lines_of_pytest_stay(project: GateProject) -> None:
    project.add_case("case-one", [])
    out = project.run("-v").outlines
    assert "case-one: 1 of 1, control, at most 10 min" in out
    assert not any("finished after" in line for line in out)
    assert any(line.startswith("cases/case-one/case.toml::control::check PASSED") for line in out)


def test_quiet_is_quiet(project: GateProject) -> None:
    project.add_case("case-one", [])
    out = project.run("-q").outlines
    assert out[0].startswith(".")
    assert not any("case-one: " in line for line in out)


def test_names_are_shortened_and_facts_are_not() -> None:
    facts = ["inconclusive (not-delivered) after 99 s", "another try follows"]
    line = _fitted(LONG, "12 of 29", "a-simulation-of-a-very-long-name-v1", facts)
    assert line == "a-case-wit..: 12 of 29, a-simulati.., " + ", ".join(facts)
    assert len(_fitted(LONG, "1 of 3", "control", ["at most 10 min"])) == 79
    assert _fitted("case-one", "1 of 3", "control", []) == "case-one: 1 of 3, control"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0 s"), (0.42, "0.4 s"), (3.0, "3 s"), (99.4, "99 s"), (600, "10 min"), (6000, "1.7 h")],
)
def test_times_read_well(seconds: float, text: str) -> None:
    assert _time(seconds) == text


def _untimed(line: str) -> str:
    """Take durations out: no test asserts a time."""
    return re.sub(r"(after|about) [\d.]+ s", r"\1 T", line)
