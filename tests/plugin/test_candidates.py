"""A candidate that regresses, from its branch to the day when that is gone: `active` stays, its decisions stay."""

import json
import subprocess
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from pytest_regcase.cli import main
from pytest_regcase.ledger.store import Ledger
from tests.ledger.postgres import an_empty_schema
from tests.plugin.gate_project import GateProject

AGENT = 'revision_paths = ["agent.py"]\n'


class Candidates:
    """A gate project in a git repository, whose agent is a file, and the commands that are tried."""

    def __init__(self, project: GateProject, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = project
        self.root = project.root
        self.url = url
        self._capsys = capsys
        pyproject = self.root / "pyproject.toml"
        head, default, rest = pyproject.read_text().partition("[tool.regcase.agents.default]\n")
        pyproject.write_text(f"{head}{default}{AGENT}{rest}")
        (self.root / ".gitignore").write_text("calls.jsonl\nscript.json\n.pytest_cache\n__pycache__\n*.sqlite3\n")
        (self.root / "agent.py").write_text("# the first one\n")
        project.add_case("trial-37", ["stall-v1"])
        self.git("init", "-q", "-b", "main")
        self.commit("one")

    def git(self, *words: str) -> str:
        named = ["-c", "user.name=mina", "-c", "user.email=m@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *named, *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def branch(self, name: str) -> str:
        """Change the agent on a branch of its own; return the commit."""
        self.git("checkout", "-q", "-b", name)
        (self.root / "agent.py").write_text(f"# {name}\n")
        self.commit(name)
        return self.git("rev-parse", "HEAD")

    def session(self, *, broken: bool = False) -> None:
        """Run a session in which the simulation is recovered from, or three times is not."""
        (self.root / "calls.jsonl").unlink(missing_ok=True)
        self.project.script({"trial-37::stall-v1": ["not-recovered"] * 3} if broken else {})
        assert self.project.run().ret == int(broken)

    def call(self, *words: str, code: int = 0) -> str:
        """Run a command, and return what it says."""
        self._capsys.readouterr()
        assert main(list(words)) == code
        said = self._capsys.readouterr()
        return said.out + said.err

    def versions(self) -> list[tuple[object, ...]]:
        """The whole table, as it is stored."""
        with Ledger.open(self.url) as ledger:
            query = text("SELECT * FROM versions ORDER BY seq")
            return ledger.database.read(lambda c: [tuple(row) for row in c.execute(query)])

    def files(self) -> dict[str, bytes]:
        """The decision files by place."""
        folder = self.root / ".regcase" / "decisions"
        return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*.json"))}


@pytest.fixture(params=["sqlite", "postgresql"])
def candidates(
    request: pytest.FixtureRequest,
    project: GateProject,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Candidates]:
    monkeypatch.chdir(project.root)
    for name in ("REGCASE_RUN_ID", "GITHUB_RUN_ID", "CI_PIPELINE_ID"):
        monkeypatch.delenv(name, raising=False)
    if request.param == "sqlite":
        yield Candidates(project, f"sqlite:///{project.root / '.regcase' / 'ledger.sqlite3'}", capsys)
        return
    with an_empty_schema() as url:
        monkeypatch.setenv("REGCASE_LEDGER", url)
        yield Candidates(project, url, capsys)


def test_a_regressing_candidate_changes_nothing_and_stays_readable_when_its_branch_is_gone(
    candidates: Candidates,
) -> None:
    good = candidates.git("rev-parse", "HEAD")
    candidates.session()
    assert "regcase promote sha256:" in candidates.call("gate", "--candidate", "HEAD")
    candidates.call("promote", "main", "--by", "mina", "--why", "release 1")
    before = candidates.versions()
    assert len(before) == 1

    bad = candidates.branch("faster")
    candidates.session(broken=True)
    said = candidates.call("gate", "--candidate", "faster", code=1)
    assert "what is active stays active" in said
    assert candidates.versions() == before
    said = candidates.call("promote", "faster", "--by", "mina", code=1)
    assert "is fail:" in said
    assert candidates.versions() == before

    # The branch and its commits go, and with them what git could tell.
    candidates.git("checkout", "-q", "main")
    candidates.git("branch", "-q", "-D", "faster")
    candidates.git("reflog", "expire", "--expire=now", "--all")
    candidates.git("gc", "-q", "--prune=now")
    told = candidates.call("history", "--version", bad[:10])
    assert "candidate: FAIL (pull-request)" in told
    assert "max_retries" in told
    assert "5 requests after the first, 3 allowed" in told
    (name,) = (each for each in candidates.files() if each.split("/")[0] in told)
    first = candidates.files()[name]
    document = json.loads(first)
    assert (document["commit"], document["decision"]["decision"]) == (bad, "fail")

    # Deciding once more appends, in the ledger and beside it.
    candidates.call("gate", "--candidate", document["revision"], code=1)
    assert candidates.files()[name] == first
    second = json.loads(candidates.files()[name.replace("0001", "0002")])
    assert second["decision"] == document["decision"]
    assert second["at"] > document["at"]
    with Ledger.open(candidates.url) as ledger:
        assert [each.decision for each in ledger.decisions(document["revision"])] == ["fail"] * 3
    assert candidates.versions() == before
    assert "(active)" in candidates.call("history", "--version", good[:10])
