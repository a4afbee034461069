"""`regcase gate --candidate`, `regcase promote` and `regcase history --version` as they are typed and read."""

import json
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.ledger.versions import versions
from pytest_regcase.session.candidates.decision_files import decision_files
from pytest_regcase.session.revisions.versions import shown_digest
from tests.session.candidates.candidate_project import CandidateProject


class Shell:
    """The project's commands, and what they say."""

    def __init__(self, bench: CandidateProject, capsys: pytest.CaptureFixture[str]) -> None:
        self.bench = bench
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        assert main(words) == code
        said = self._capsys.readouterr()
        self.err = said.err
        return said.out

    @property
    def name(self) -> str:
        """The revision as commands show it."""
        return shown_digest(self.bench.revision)

    def active(self) -> list[str]:
        """Everything that was made active, oldest first."""
        with self.bench.ledger() as ledger:
            return [each.active for each in versions(ledger)]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    for name in ("REGCASE_RUN_ID", "GITHUB_RUN_ID", "CI_PIPELINE_ID"):
        monkeypatch.delenv(name, raising=False)
    return Shell(CandidateProject(tmp_path), capsys)


def joined(text: str) -> str:
    return " ".join(text.split())


def test_from_a_passing_candidate_to_the_active_revision(shell: Shell) -> None:
    shell.bench.session()
    said = shell("gate", "--candidate", shell.name)
    (file,) = decision_files(shell.bench.project, shell.bench.revision)
    assert f"decided on {shell.name}, kept in the ledger and in" in joined(said)
    assert file.path.name in said
    assert said.endswith(f"To make it the active one: regcase promote {shell.name}\n")
    assert shell.active() == []

    said = joined(shell("promote", shell.name, "--by", "mina", "--why", "release 1"))
    assert said.startswith(f"{shell.name} is active now (nothing was active before); recorded for mina")
    assert said.endswith(f"(pull-request): regcase history --version {shell.name}")
    assert shell.active() == [shell.bench.revision]

    said = joined(shell("promote", shell.name, "--by", "omar"))
    assert said.startswith(f"{shell.name} is active already, since ")
    assert said.endswith("by mina; nothing was changed")
    assert shell.active() == [shell.bench.revision]


def test_a_failing_candidate_is_said_and_kept_and_cannot_be_promoted(shell: Shell) -> None:
    shell.bench.session(broken=True)
    assert shell("gate", "--candidate", shell.name, code=1).endswith(
        "It changes nothing; what is active stays active.\n"
    )
    assert shell("promote", shell.name, "--by", "mina", code=1) == ""
    assert f"Couldn't promote {shell.name}: its last decision" in shell.err
    assert shell.active() == []


def test_the_documents(shell: Shell) -> None:
    first = shell.bench.revision
    shell.bench.session()
    decision = json.loads(shell("gate", "--candidate", first, "--json"))
    assert (decision["decision"], "cases" in decision) == ("pass", True)
    assert "regcase promote" in shell.err
    done = json.loads(shell("promote", first, "--by", "mina", "--json"))
    assert (done["schema"], done["changed"], done["active"], done["who"]) == (1, True, first, "mina")
    assert {"before", "why"}.isdisjoint(done)

    shell.bench.change_agent("second")
    shell.bench.session()
    shell("gate", "--candidate", shell.name)
    done = json.loads(shell("promote", shell.name, "--by", "mina", "--why", "w", "--json"))
    assert (done["before"], done["why"]) == (first, "w")

    told = json.loads(shell("history", "--version", first, "--json"))
    assert (told["schema"], told["revision"], told["active"]) == (1, first, False)
    assert [each["kind"] for each in told["events"]] == ["session", "candidate", "active", "replaced"]
    assert told["events"][1]["decision"] == decision
    assert told["events"][1]["file"].endswith("0001.json")
    assert told["agents"] == {"default": first}
    assert "notices" not in told


def test_the_story_of_a_revision_ends_with_how_it_did(shell: Shell) -> None:
    shell.bench.session(commit="c0ffee0123456789-dirty")
    shell("gate", "--candidate", shell.name)
    shell.bench.session(broken=True)
    shell("gate", "--candidate", shell.name, code=1)
    told = shell("history", "--version", "c0ffee0")
    assert max(map(len, told.splitlines())) <= 80
    flat = joined(told)
    assert told.startswith(f"{shell.bench.revision}\n")
    assert "pull-request, on commit c0ffee0123 with uncommitted changes" in flat
    assert flat.index("candidate: PASS") < flat.index("candidate: FAIL")
    assert "had uncommitted changes: what is decided on need not be what the commit holds" in flat
    assert "as a candidate, decided last:" in told
    assert "max_retries did not hold" in flat
    assert "FAIL" in told.splitlines()[-1]


def test_what_old_sessions_left_can_go_and_decisions_stay(shell: Shell) -> None:
    shell.bench.session(broken=True)
    shell("gate", "--candidate", shell.name, code=1)
    told = shell("history", "--version", shell.name)
    shell("ledger", "prune", "--days", "0")
    assert shell("history", "--version", shell.name) == told


def test_a_file_that_was_edited_is_told(shell: Shell) -> None:
    shell.bench.session()
    shell("gate", "--candidate", shell.name)
    (file,) = decision_files(shell.bench.project, shell.bench.revision)
    file.path.chmod(0o644)
    file.path.write_text(file.path.read_text().replace('"pull-request"', '"nightly"'))
    told = joined(shell("history", "--version", shell.name))
    assert "no file of it is here" in told
    assert "0001.json is not what the ledger holds of any decision on this revision" in told


@pytest.mark.parametrize(
    "words",
    [
        ["gate", "--candidate", "nothing-like-it"],
        ["promote", "nothing-like-it", "--by", "mina"],
        ["history", "--version", "nothing-like-it"],
    ],
)
def test_what_no_session_ran_is_refused_with_what_is_there(shell: Shell, words: list[str]) -> None:
    shell.bench.session()
    assert shell(*words, code=2) == ""
    assert "Couldn't find revision 'nothing-like-it'" in shell.err
    assert shell.name in shell.err


def test_a_look_makes_no_ledger(shell: Shell) -> None:
    for words in (
        ["gate", "--candidate", shell.name],
        ["promote", shell.name, "--by", "mina"],
        ["history", "--version", shell.name],
    ):
        shell(*words, code=2)
        assert "pytest --regcase" in shell.err or "no ledger" in shell.err
        assert not (shell.bench.root / ".regcase").exists()


def test_several_ledgers_cannot_keep_one_decision(shell: Shell) -> None:
    shell.bench.session()
    place = str(shell.bench.root / ".regcase" / "ledger.sqlite3")
    shell("gate", "--candidate", shell.name, "--ledger", place, "--ledger", place, code=2)
    assert "regcase ledger merge" in shell.err


@pytest.mark.parametrize("words", [["history"], ["history", "trial-37", "--version", "r"]])
def test_history_is_of_a_case_or_of_a_revision(shell: Shell, words: list[str]) -> None:
    shell(*words, code=2)
    assert "either CASE or --version REV" in shell.err


def test_stats_say_what_is_active(shell: Shell) -> None:
    shell.bench.session()
    assert "  active    " not in shell("ledger", "stats")
    shell("gate", "--candidate", shell.name)
    shell("promote", shell.name, "--by", "mina")
    assert f"  active    {shell.bench.revision}" in shell("ledger", "stats")
    assert json.loads(shell("ledger", "stats", "--json"))["active"] == shell.bench.revision
