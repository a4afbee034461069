import contextlib
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.agents import process as process_module
from pytest_regcase.agents.launch import Launch, Places
from pytest_regcase.agents.process import AgentProcess, run_cleanup
from pytest_regcase.errors import MachineryError
from tests.agents.conftest import Start
from tests.agents.waiting import is_gone, until

needs_proc = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="a subreaper is a thing of Linux; elsewhere the group is ended"
)
HANG = "import time; time.sleep(600)"
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('deaf', flush=True)
time.sleep(600)
"""


def all_messages(process: AgentProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with selectors.DefaultSelector() as selector:
        selector.register(process.fileno(), selectors.EVENT_READ)
        while True:
            # An agent that ends at once may have come to its end before its start was read.
            found += process.read_messages()
            if process.done:
                return found
            assert selector.select(30), "nothing was said for 30 s"


@pytest.mark.parametrize("code", [0, 1, 7])
def test_says_how_an_agent_ended_by_itself(start: Start, code: int) -> None:
    process = start(f"raise SystemExit({code})")
    messages = all_messages(process)
    assert [each["say"] for each in messages] == ["exited", "done"]
    assert messages[0]["code"] == code
    assert messages[0]["t"] == process.ended_at
    assert (process.exit.code, process.exit.signal, process.exit.ended_by) == (code, None, None)
    assert process.exit.stragglers == 0


def test_says_the_signal_that_ended_an_agent(start: Start) -> None:
    process = start("import os; os.kill(os.getpid(), 11)")
    assert process.wait(30)
    assert (process.exit.code, process.exit.signal, process.exit.ended_by) == (None, 11, None)


def test_appends_to_stdout_and_stderr_and_gives_no_input(start: Start, places: Places) -> None:
    places.stdout.write_text("before\n")
    process = start("import sys; print(repr(sys.stdin.read())); print('to stderr', file=sys.stderr)")
    assert process.wait(30)
    assert places.stdout.read_text() == "before\n''\n"
    assert places.stderr.read_text() == "to stderr\n"


def test_ends_an_agent_that_hangs(start: Start) -> None:
    process = start(HANG)
    found = process.end(10, ended_by="deadline")
    assert (found.code, found.signal, found.ended_by) == (None, signal.SIGTERM, "deadline")
    assert found == process.exit
    assert process.ended_at is not None


def test_kills_an_agent_that_does_not_listen(start: Start, places: Places) -> None:
    process = start(DEAF)
    assert until(lambda: places.stdout.exists() and "deaf" in places.stdout.read_text())
    found = process.end(0.2, ended_by="cap")
    assert (found.signal, found.ended_by) == (signal.SIGKILL, "cap")


def test_who_ended_by_itself_was_not_ended_by_us(start: Start) -> None:
    process = start("raise SystemExit(3)")
    assert until(lambda: bool(process.read_messages()) or process.has_exited)
    assert process.end(ended_by="deadline").ended_by is None


def test_an_orderly_end_after_our_signal_keeps_its_exit_code(start: Start, places: Places) -> None:
    process = start(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)"
    )
    assert until(lambda: places.stdout.exists() and "ready" in places.stdout.read_text())
    found = process.end(10, ended_by="deadline")
    assert (found.code, found.signal, found.ended_by) == (0, None, "deadline")


ESCAPES = {
    "child in a session of its own": """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
""",
    "setsid -f": """
import os, subprocess
subprocess.run(["setsid", "-f", "sh", "-c", "echo $$ > pid.part; mv pid.part pid; exec sleep 600"], check=True)
import time
while not os.path.exists("pid"):
    time.sleep(0.01)
pid = open("pid").read().strip()
while open(f"/proc/{pid}/comm").read() != "sleep\\n":  # until then `mv` may still be there
    time.sleep(0.01)
print(pid, flush=True)
""",
    "daemon with a wiped environment": """
import os, sys, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(write, str(os.getpid()).encode())
    os.close(0); os.close(1); os.close(2)
    os.chdir("/")
    os.execve("/bin/sleep", ["sleep", "600"], {})
os.wait()
print(os.read(read, 100).decode(), flush=True)
""",
}


def escaped(places: Places) -> int:
    assert until(lambda: places.stdout.exists() and places.stdout.read_text().endswith("\n"))
    return int(places.stdout.read_text())


@needs_proc
@pytest.mark.parametrize("shape", ESCAPES)
def test_ends_and_counts_what_outlives_the_agent(start: Start, places: Places, shape: str) -> None:
    process = start(ESCAPES[shape])
    messages = all_messages(process)
    assert [each["say"] for each in messages] == ["exited", "stragglers", "done"]
    assert messages[1]["count"] == 1
    assert messages[2]["left"] == 0
    assert (process.exit.code, process.exit.ended_by, process.exit.stragglers) == (0, None, 1)
    assert is_gone(escaped(places))


@needs_proc
@pytest.mark.parametrize("shape", ESCAPES)
def test_ends_what_escaped_when_it_ends_a_hung_agent(start: Start, places: Places, shape: str) -> None:
    process = start(ESCAPES[shape] + "\nimport time; time.sleep(600)")
    pid = escaped(places)
    assert not is_gone(pid)
    assert process.end(5, ended_by="deadline").ended_by == "deadline"
    assert is_gone(pid)


@needs_proc
def test_kills_a_straggler_that_does_not_listen(start: Start, places: Places) -> None:
    process = start(
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {DEAF!r}], start_new_session=True, stdout=-1)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)"
    )
    assert process.wait(30)
    assert process.exit.stragglers == 1
    assert is_gone(escaped(places))


def test_a_child_that_ends_with_the_agent_is_no_straggler(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A fifth of a second is none for a child that a busy machine lets wait; a minute is.
    patient = tmp_path / "supervisor.py"
    soon, late = "\nSETTLE_SECONDS = 0.2\n", "\nSETTLE_SECONDS = 60\n"
    patient.write_text(process_module.SUPERVISOR.read_text().replace(soon, late))
    assert late in patient.read_text()
    monkeypatch.setattr(process_module, "SUPERVISOR", patient)
    process = start("import subprocess; subprocess.Popen(['sh', '-c', 'exit 0'])")
    assert process.wait(30)
    assert process.exit.stragglers == 0


@needs_proc
def test_when_we_are_killed_the_agent_and_its_daemons_die(tmp_path: Path) -> None:
    program = f"""
import sys, time
from pathlib import Path
from pytest_regcase.agents.launch import Launch, Places
from pytest_regcase.agents.process import AgentProcess
places = Places.below(Path({str(tmp_path)!r}) / "attempt")
places.work_dir.mkdir(parents=True)
program = {ESCAPES["setsid -f"] + "import time; time.sleep(600)"!r}
launch = Launch((sys.executable, "-c", program), {{"PATH": "/usr/bin:/bin"}}, places.work_dir, {{}})
process = AgentProcess.start(launch, places)
while not places.stdout.exists() or not places.stdout.read_text().endswith("\\n"):
    time.sleep(0.01)
print(process.pid, places.stdout.read_text().strip(), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        agent, daemon = (int(each) for each in parent.stdout.readline().split())
        assert not is_gone(agent)
        parent.kill()
    assert until(lambda: is_gone(agent) and is_gone(daemon))


def test_leaving_the_context_ends_the_agent(places: Places) -> None:
    launch = Launch((sys.executable, "-c", HANG), {"PATH": "/usr/bin:/bin"}, places.work_dir, {})
    with AgentProcess.start(launch, places) as process:
        pid = process.pid
        assert pid is not None
        assert not process.wait(0)
    assert is_gone(pid)
    assert process.done
    process.close()


def open_files() -> set[tuple[int, int, int]]:
    """Return what is open here: numbers, and of what file, since a number that is given back is used again."""
    found = set()
    for number in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):  # the listing's own
            about = os.fstat(number)
            found.add((number, about.st_dev, about.st_ino))
    return found


def test_its_pipes_reach_no_other_child(start: Start) -> None:
    before = open_files()
    process = start(HANG)
    opened = [number for number, *_ in open_files() - before if number > 2]
    assert process.fileno() in opened
    assert [number for number in opened if os.get_inheritable(number)] == []


def test_the_agent_inherits_no_file_but_its_three(start: Start, places: Places) -> None:
    process = start(
        "import os; print(sorted(int(n) for n in os.listdir('/dev/fd') if os.path.exists(f'/dev/fd/{n}')))"
    )
    assert process.wait(30)
    assert places.stdout.read_text().strip() == "[0, 1, 2]"


def test_the_supervisor_holds_no_variable_of_ours(
    start: Start, monkeypatch: pytest.MonkeyPatch, places: Places
) -> None:
    monkeypatch.setenv("A_SECRET_OF_OURS", "hunter2")
    process = start(
        "import os\n"
        "path = f'/proc/{os.getppid()}/environ'\n"
        "print(open(path).read() if os.path.exists(path) else 'no /proc')"
    )
    assert process.wait(30)
    assert "hunter2" not in places.stdout.read_text()


@pytest.mark.parametrize(
    ("mode", "says"), [(None, "No such file"), (0o644, "Permission denied"), (0o755, "Exec format")]
)
def test_a_program_that_cannot_be_started_is_broken_machinery(places: Places, mode: int | None, says: str) -> None:
    program = places.folder / "program"
    if mode is not None:
        program.write_text("no program\n")
        program.chmod(mode)
    launch = Launch((str(program),), {"PATH": "/usr/bin:/bin"}, places.work_dir, {})
    with pytest.raises(MachineryError, match=says) as caught:
        AgentProcess.start(launch, places)
    assert caught.value.slug == "command-not-found"
    assert caught.value.text.startswith(f"Couldn't start {program}: ")


@needs_proc
def test_a_killed_supervisor_is_broken_machinery_and_the_agent_is_killed(start: Start) -> None:
    process = start(HANG)
    pid = process.pid
    assert pid is not None
    supervisor = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(supervisor, signal.SIGKILL)
    with pytest.raises(MachineryError, match="ended before the agent did"):
        process.wait(30)
    assert until(lambda: is_gone(pid))


def test_exit_is_not_known_before_the_end(start: Start) -> None:
    process = start(HANG)
    assert process.ended_at is None
    assert not process.has_exited
    with pytest.raises(MachineryError, match="has not ended"):
        _ = process.exit


def test_cleanup_runs_in_the_agents_environment(places: Places) -> None:
    def launch(*cleanup: str) -> Launch:
        return Launch(("true",), {"PATH": "/usr/bin:/bin", "WHO": "agent"}, places.work_dir, {}, cleanup)

    assert run_cleanup(launch(), places) is None
    assert run_cleanup(launch("sh", "-c", "echo cleaned by $WHO"), places) is None
    assert (places.folder / "cleanup.txt").read_text() == "cleaned by agent\n"
    assert "exit status 3" in (run_cleanup(launch("sh", "-c", "exit 3"), places) or "")
    assert "no-such-program" in (run_cleanup(launch("no-such-program"), places) or "")
