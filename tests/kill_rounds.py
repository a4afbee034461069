"""Kills a gate run, or what it stands on, at seeded moments, and looks whether every printed attempt is counted.

No attempt that was printed may be missing in the ledger, and none may be there more often than it was made. The
attempts are scripted and take milliseconds. test_kill.py makes a few rounds; many are made by hand:

    python -m tests.kill_rounds --rounds 200

Rounds with a database server start one of their own (`.ci/postgres`): the death of one of its processes ends the
connections of all.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_regcase.errors import LedgerError
from pytest_regcase.ledger.engine import LOST
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.session.ledgers.exchange import SPOOL_FILE
from tests.ledger.postgres import run_on
from tests.plugin.gate_project import PYPROJECT, SCRIPTED, WITHOUT_OTHERS, write_case, write_simulation
from tests.plugin.warm_pytest import REPOSITORY, Running, warm_pytest

CASES = 4
PATIENCE_SECONDS = 120.0
PRINTED = re.compile(r"(?:^| )(cases/\S+/case\.toml::[\w-]+::[\w-]+) (?:PASSED|FAILED|RERUN)", re.MULTILINE)
PRINTED_BY_XDIST = re.compile(r"%\] (?:PASSED|FAILED|RERUN) (cases/\S+/case\.toml::[\w-]+::[\w-]+)")
NODE_ID = re.compile(r"cases/(\S+)/case\.toml::([\w-]+)::check")
OURS = "kill_rounds"
"""The name by which the server knows the connections of the runs."""


@dataclass
class Tally:
    """What some rounds printed, and what was wrong with what the ledger holds of them."""

    rounds: int = 0
    printed: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    twice: Counter[str] = field(default_factory=Counter)


class KillProject:
    """A gate project that is run and killed again and again, on one ledger."""

    def __init__(self, root: Path, server: str | None = None) -> None:
        self.root = root
        self.server = server
        self._url = f"sqlite:///{root / '.regcase' / 'ledger.sqlite3'}"
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        if server is not None:
            self._url = f"{server}&application_name={OURS}"
            self._env["REGCASE_LEDGER"] = self._url
        (root / "pyproject.toml").write_text(PYPROJECT)
        (root / "conftest.py").write_text(SCRIPTED.read_text())
        simulations = ("stall-v1", "killed-v1")
        for each in simulations:
            write_simulation(root, each)
        # A check that does not recover is tried three times: more is printed, more can be lost.
        bad = {f"trial-{number}::stall-v1": ["not-recovered"] * 3 for number in range(CASES)}
        (root / "script.json").write_text(json.dumps(bad))
        for number in range(CASES):
            write_case(root, f"trial-{number}", simulations)

    def round(self, target: "Target", luck: random.Random, tally: Tally) -> None:
        """Run, kill at a moment, and add what is missing or too much to the tally."""
        (self.root / "calls.jsonl").unlink(missing_ok=True)
        before = self._sessions()
        wanted, moment = luck.randint(0, 7 * CASES - 2), luck.uniform(0, 0.02)
        output = self.root / "output"
        with _inside(self.root), output.open("wb") as file:
            args = [*WITHOUT_OTHERS, "-pno:cacheprovider", "--regcase", "-v", *target.args]
            run = warm_pytest().start(args, out=file.fileno(), err=file.fileno(), env=self._env)
        while run.wait(0.001) is None and len(_printed(output)) < wanted:
            pass
        time.sleep(moment)
        target.kill(self, run, luck)
        if run.wait(PATIENCE_SECONDS) is None:
            run.kill(signal.SIGABRT)  # pytest has faulthandler print where every thread is
            run.wait()
            raise AssertionError(f"it did not end\n{output.read_text(errors='replace')}")
        self._wait_for_workers()
        new = self._sessions() - before
        self._count(_printed(output), [each for session in sorted(new) for each in self._rows(session)], tally)

    def kill_a_worker(self, run: Running, luck: random.Random) -> None:
        """Kill one of those that run, if any does."""
        pids = [pid for pid in self._workers() if _lives(pid)]
        if pids and run.wait(0) is None:
            with suppress(ProcessLookupError):
                os.kill(luck.choice(pids), signal.SIGKILL)

    def backends(self) -> list[int]:
        """Return the processes of the server that serve the runs."""
        assert self.server is not None
        query = f"SELECT pid FROM pg_stat_activity WHERE application_name = '{OURS}'"
        return [int(str(row[0])) for row in run_on(self.server, query)]

    def check_integrity(self) -> None:
        """Ask SQLite whether its file is whole."""
        if self.server is None:
            with Ledger.open(self._url) as ledger:
                found = ledger.database.read(lambda c: c.exec_driver_sql("PRAGMA integrity_check").scalar())
            assert found == "ok", found

    def _count(self, printed: list[str], rows: list[AttemptRecord], tally: Tally) -> None:
        calls = (self.root / "calls.jsonl").read_text() if (self.root / "calls.jsonl").exists() else ""
        # Of the last line a killed process may have written a part.
        made = Counter(json.loads(line)["name"] for line in calls.splitlines() if line.endswith("}"))
        counted = Counter(f"{row.case_id}::{row.scenario}" for row in rows)
        # A crash is told of an attempt that may not have begun.
        finished = Counter(f"{row.case_id}::{row.scenario}" for row in rows if row.reason != "worker-crashed")
        tally.rounds += 1
        tally.printed += len(printed)
        tally.lost += Counter(NODE_ID.sub(r"\1::\2", each) for each in printed) - counted
        tally.twice += finished - made

    def _opened(self) -> Ledger:
        """Open the ledger; a server that lost one of its processes takes nobody until it has begun anew."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return Ledger.open(self._url)
            except LedgerError as error:
                if error.slug != LOST or time.monotonic() >= end:
                    raise
            time.sleep(0.05)

    def _rows(self, session_id: str) -> list[AttemptRecord]:
        with self._opened() as ledger:
            rows = [each.record for each in ledger.rows(session_id=session_id)]
        spool = self.root / ".regcase" / "sessions" / session_id / SPOOL_FILE
        if spool.exists():
            lines = spool.read_text().splitlines()
            rows += [AttemptRecord.model_validate_json(line) for line in lines]
        return rows

    def _sessions(self) -> set[str]:
        folder = self.root / ".regcase" / "sessions"
        return {each.name for each in folder.iterdir()} if folder.exists() else set()

    def _workers(self) -> list[int]:
        files = (self.root / ".regcase" / "sessions").glob("*/workers/*.pid")
        return [int(text) for each in files if (text := each.read_text().strip())]

    def _wait_for_workers(self) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while any(_lives(pid) for pid in self._workers()):
            assert time.monotonic() < end, "a worker outlived its controller"
            time.sleep(0.005)
        for each in (self.root / ".regcase" / "sessions").glob("*/workers/*.pid"):
            each.unlink()


@dataclass(frozen=True)
class Target:
    """What is killed in a round, and how pytest is run."""

    name: str
    kill: Callable[[KillProject, Running, random.Random], None]
    args: tuple[str, ...] = ()
    on_a_server: bool = False


def _end_backends(project: KillProject) -> None:
    for pid in project.backends():
        run_on(project.server or "", f"SELECT pg_terminate_backend({pid})")


def _kill_backends(project: KillProject) -> None:
    for pid in project.backends():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


TARGETS = {
    each.name: each
    for each in (
        Target("controller", lambda _, run, __: run.kill()),
        Target("controller with workers", lambda _, run, __: run.kill(), ("-n", "2")),
        Target("worker", lambda project, run, luck: project.kill_a_worker(run, luck), ("-n", "2")),
        Target("backend ended", lambda project, *_: _end_backends(project), on_a_server=True),
        Target("backend killed", lambda project, *_: _kill_backends(project), on_a_server=True),
    )
}


@contextmanager
def a_server() -> Iterator[str]:
    """Run a database server of our own; give its URL."""
    script = str(REPOSITORY / ".ci" / "postgres")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the server has a user of its own
        started = subprocess.run([script, "start", folder], check=True, stdout=subprocess.PIPE, text=True)
        try:
            yield started.stdout.splitlines()[-1]
        finally:
            subprocess.run([script, "stop", folder], check=False, stdout=subprocess.DEVNULL)


def rounds(root: Path, target: Target, number: int, seed: int, server: str | None = None) -> Tally:
    """Make so many rounds in an empty folder; the same seed makes the same choices, not the same moments.

    On a server the ledger is a schema of that target's own, which must not be there yet.
    """
    if server is not None:
        schema = target.name.replace(" ", "_")
        run_on(server, f"CREATE SCHEMA {schema}")
        server = f"{server}&options=-csearch_path%3D{schema}"
    project = KillProject(root, server)
    tally, luck = Tally(), random.Random(f"{seed} {target.name}")
    for _ in range(number):
        project.round(target, luck, tally)
    project.check_integrity()
    return tally


def _printed(output: Path) -> list[str]:
    text = output.read_text(errors="replace")
    return PRINTED.findall(text) or PRINTED_BY_XDIST.findall(text)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def main() -> int:
    """Make the rounds, in equal parts of each target, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill_rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="in all (default: 200)")
    parser.add_argument("--seed", type=int, default=37)
    given = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder, a_server() as server:
        for place, target in enumerate(TARGETS.values()):
            number = given.rounds // len(TARGETS) + (place < given.rounds % len(TARGETS))
            root = Path(folder) / str(place)
            root.mkdir()
            found = rounds(root, target, number, given.seed, server if target.on_a_server else None)
            bad += found.lost.total() + found.twice.total()
            print(
                f"{target.name}: {found.rounds} rounds, {found.printed} attempts printed,"
                f" {found.lost.total()} lost, {found.twice.total()} counted twice",
                *found.lost,
                *found.twice,
                sep="\n  ",
                flush=True,
            )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
