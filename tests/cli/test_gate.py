"""`regcase gate`: over the sessions of one ledger or several, and what is missing there."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import load_simulations
from pytest_regcase.cli import main
from pytest_regcase.config import load_project
from pytest_regcase.ledger.sessions import session_heads, whole
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.gate import decide_session
from pytest_regcase.session.planning import opening
from tests.plugin.gate_project import PYPROJECT, write_case, write_simulation
from tests.rules.attempt_samples import an_attempt, findings

GOOD = {"control": "finished", "simulation": "recovered", "live": "clean"}
CAPTURE = pytest.CaptureFixture[str]


class Sessions:
    """A project whose sessions are opened as pytest opens them, and whose attempts are made up."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "pyproject.toml").write_text(PYPROJECT)
        write_simulation(root, "stall-v1")

    def place(self, name: str = ".regcase/ledger.sqlite3") -> str:
        return str(self.root / name)

    def run(
        self,
        verdicts: dict[str, Any] | None = None,
        *,
        ledger: str | None = None,
        ends: bool = True,
        seconds: float = 0.0,
        **given: Any,
    ) -> GateDecision:
        """Run a session; `verdicts` says by ``case::scenario`` what is shown, None that it was not run."""
        project = load_project(self.root)
        simulations = load_simulations(project)
        with Ledger.open(f"sqlite:///{ledger or self.place()}") as found:
            files = opening.chosen_files(project, given.pop("paths", None))
            asked = {"profile": "pull-request", "live_new": 0, "agent": None, **given}
            opened = opening.open_session(project, files, simulations, found, **asked)
            row = opening.session_row(project, opened)
            found.start_session(row)
            for entry in opened.entries:
                for plan in entry.plans:
                    key = plan.key
                    verdict = (verdicts or {}).get(f"{key.case_id}::{key.scenario}", GOOD[plan.kind])
                    if verdict is None:
                        continue
                    assert entry.loaded is not None
                    simulation = simulations.get(key.scenario)
                    found.append(
                        an_attempt(
                            verdict,
                            key.scenario,
                            session_id=row.session_id,
                            case_id=key.case_id,
                            agent=key.agent,
                            digests=attempt_digests(project, entry.loaded, simulation, plan, opened.snapshot),
                            findings=findings(["max_retries"]) if verdict == "not-recovered" else (),
                            started_at=datetime.now(UTC),
                            duration_seconds=seconds,
                        )
                    )
            if ends:
                found.finish_session(row.session_id, datetime.now(UTC))
            return decide_session(
                project,
                [each.loaded for each in opened.entries if each.loaded is not None],
                found,
                row,
                snapshot=opened.snapshot,
                simulations=simulations,
                invalid=opening.invalid_cases(project, opened.entries),
                interrupted=not ends,
            )


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    monkeypatch.chdir(tmp_path)
    for name in ("REGCASE_LEDGER", *opening.RUN_IDS):
        monkeypatch.delenv(name, raising=False)
    return Sessions(tmp_path)


@pytest.fixture
def two(sessions: Sessions) -> Sessions:
    """With two cases."""
    for name in ("trial-1", "trial-2"):
        write_case(sessions.root, name, ["stall-v1"])
    return sessions


def gate(capsys: CAPTURE, *args: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["gate", "--json", *args])
    return code, json.loads(capsys.readouterr().out)


def red(document: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(each["code"], each["case_id"]) for each in document["reasons"] if each["red"]]


class TestOneSession:
    @pytest.mark.parametrize(
        ("verdicts", "code"),
        [({}, 0), ({"trial-2::stall-v1": "not-recovered"}, 1), ({"trial-1::control": None}, 3)],
        ids=["pass", "fail", "unproven"],
    )
    def test_it_is_the_sessions_own_decision(
        self, two: Sessions, capsys: CAPTURE, verdicts: dict[str, Any], code: int
    ) -> None:
        decided = two.run(verdicts)
        assert gate(capsys) == (code, json.loads(canonical_json(decided.to_plain())))

    def test_what_it_was_made_over_is_said_above_the_summary(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run({"trial-2::stall-v1": "not-recovered"})
        assert main(["gate"]) == 1
        out = capsys.readouterr().out.splitlines()
        assert out[0].startswith("gate over session 20")
        assert out[0].endswith(" (pull-request)")
        assert "FAIL (profile pull-request, confirm:2): 2 cases, 4 checks: 3 passed, 1" in out
        main(["gate", "--json"])
        assert capsys.readouterr().err.splitlines() == out[:1]

    def test_the_newest_one_decides(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run({"trial-2::stall-v1": "not-recovered"})
        two.run(profile="nightly")
        assert gate(capsys)[0] == 0
        code, document = gate(capsys, "--profile=pull-request")
        assert (code, document["profile"]) == (1, "pull-request")

    def test_one_without_an_end_is_unproven_though_everything_ran(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run(ends=False)
        code, document = gate(capsys)
        assert (code, red(document)) == (3, [("interrupted", None)])
        assert main(["gate"]) == 3
        assert capsys.readouterr().out.splitlines()[0].endswith("without an end)")

    def test_a_case_that_it_was_not_asked_about_was_not_run(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run(paths=[two.root / "cases" / "trial-1"])
        code, document = gate(capsys)
        assert (code, red(document)) == (3, [("not-run", "trial-2")])

    def test_a_simulation_that_the_case_has_since_was_not_run(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run()
        write_simulation(two.root, "killed-v1")
        write_case(two.root, "trial-1", ["stall-v1", "killed-v1"])
        code, document = gate(capsys)
        assert (code, red(document)) == (3, [("not-run", "trial-1")])

    def test_a_case_that_is_gone_is_not_green(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run()
        (two.root / "cases" / "trial-1" / "case.toml").unlink()
        code, document = gate(capsys)
        assert (code, red(document)) == (3, [("not-run", "trial-1")])

    @pytest.mark.parametrize("profile", ["pull-request", "release"])
    def test_a_case_that_names_another_agent_since_was_not_run_by_it(
        self, two: Sessions, capsys: CAPTURE, profile: str
    ) -> None:
        two.run()
        path = two.root / "cases" / "trial-1" / "case.toml"
        path.write_text(path.read_text().replace("title =", 'agent = "other"\ntitle =', 1))
        code, document = gate(capsys, "--profile", profile)
        assert (code, red(document)) == (3, [("not-run", "trial-1")])

    def test_one_that_is_dated_ahead_hides_what_came_after_it(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run()
        with Ledger.open(f"sqlite:///{two.place()}") as found:
            (head,) = session_heads(found)
            (row,) = whole(found, [head])
            later = row.started_at + timedelta(days=2)
            ahead = row.model_copy(update={"session_id": "ahead", "started_at": later})
            found.start_session(ahead)
        for args in ([], ["--profile=release"]):
            code, document = gate(capsys, *args)
            assert code == 3
            assert ("dated-ahead", None) in red(document)
        assert main(["gate"]) == 3
        assert "see that the clock" in capsys.readouterr().out

    def test_invalid_cases_are_said_as_the_session_says_them(self, two: Sessions, capsys: CAPTURE) -> None:
        write_case(two.root, "trial-3", ["no-such-v1"])
        write_case(two.root, "trial-4", []).write_text("nonsense")
        decided = two.run()
        assert [each.case_id for each in decided.reasons] == ["cases/trial-4/case.toml", "trial-3"]
        assert gate(capsys) == (1, json.loads(canonical_json(decided.to_plain())))

    def test_an_agent_that_changed_since_has_no_session(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run()
        pyproject = two.root / "pyproject.toml"
        pyproject.write_text(pyproject.read_text().replace('"--out"', '"--to"'))
        code, document = gate(capsys)
        assert code == 3
        assert {each for each, _ in red(document)} == {"no-session", "nothing-selected", "not-run"}
        assert main(["gate"]) == 3
        assert capsys.readouterr().out.splitlines()[0] == "gate over no session"

    def test_another_agent_that_the_session_ran(self, two: Sessions, capsys: CAPTURE) -> None:
        decided = two.run(agent="other")
        assert gate(capsys) == (0, json.loads(canonical_json(decided.to_plain())))
        assert main(["gate"]) == 0
        assert capsys.readouterr().out.splitlines()[0].endswith("(pull-request, agent other)")

    def test_what_had_no_room(self, two: Sessions, capsys: CAPTURE) -> None:
        decided = two.run(max_minutes=25)
        assert gate(capsys) == (3, json.loads(canonical_json(decided.to_plain())))
        decided = two.run(max_minutes=21)
        assert gate(capsys) == (0, json.loads(canonical_json(decided.to_plain())))

    @pytest.mark.parametrize("scenario", ["stall-v1", "control"])
    def test_what_was_red_has_the_first_room_and_stays_red_without_any(
        self, two: Sessions, capsys: CAPTURE, scenario: str
    ) -> None:
        shows = {f"trial-2::{scenario}": "not-recovered" if scenario == "stall-v1" else "did-not-finish"}
        two.run(shows, seconds=60)
        assert two.run(max_minutes=2).decision == "pass"
        two.run(shows, seconds=60)
        two.run(paths=[two.root / "cases" / "trial-1"])
        two.run(max_minutes=1)
        code, document = gate(capsys)
        assert code == 3
        assert [each["text"] for each in document["reasons"] if each["red"] and each["case_id"]] == [
            f"not run: it did not fit into the minutes of this session, and {scenario} was red when it last ran"
        ]


class TestRunOfACi:
    def test_its_own_session_decides_and_no_newer_one(
        self, two: Sessions, capsys: CAPTURE, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GITHUB_RUN_ID", "77")
        two.run({"trial-2::stall-v1": "not-recovered"})
        monkeypatch.setenv("GITHUB_RUN_ID", "78")
        two.run()
        assert gate(capsys)[0] == 0
        monkeypatch.setenv("REGCASE_RUN_ID", "77")
        assert gate(capsys)[0] == 1

    def test_a_run_without_a_session_is_unproven(
        self, two: Sessions, capsys: CAPTURE, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two.run()
        monkeypatch.setenv("CI_PIPELINE_ID", "79")
        code, document = gate(capsys)
        assert code == 3
        says = [each["text"] for each in document["reasons"] if each["code"] == "no-session"]
        assert says == ["the CI run 79 left no session in this ledger"]

    @pytest.mark.parametrize("run_id", ["\udcff", "x" * 201])
    def test_whatever_it_is_called_it_is_found_again(
        self, two: Sessions, capsys: CAPTURE, monkeypatch: pytest.MonkeyPatch, run_id: str
    ) -> None:
        monkeypatch.setenv("REGCASE_RUN_ID", run_id)
        two.run()
        with Ledger.open(f"sqlite:///{two.place()}") as found:
            (head,) = session_heads(found)
        assert head.run_id is not None
        assert len(head.run_id) <= 200
        assert gate(capsys)[0] == 0

    def test_an_empty_variable_is_none(
        self, two: Sessions, capsys: CAPTURE, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two.run()
        monkeypatch.setenv("GITHUB_RUN_ID", "")
        assert gate(capsys)[0] == 0


class TestShards:
    def test_over_ledgers_in_any_order_they_are_one_session(self, two: Sessions, capsys: CAPTURE) -> None:
        whole = two.run({"trial-2::stall-v1": "not-recovered"})
        places = [two.place(f"{number}.sqlite3") for number in (1, 2, 3)]
        for number, place in enumerate(places, 1):
            two.run({"trial-2::stall-v1": "not-recovered"}, ledger=place, shard=f"{number}/3")
        for order in (places, places[::-1]):
            found = gate(capsys, *(f"--ledger={each}" for each in order))
            assert found == (1, json.loads(canonical_json(whole.to_plain())))

    def test_one_that_left_nothing_is_unproven(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run(shard="1/3")
        two.run(shard="2/3")
        code, document = gate(capsys)
        assert (code, red(document)) == (3, [("no-session", None)])
        two.run(shard="3/3")
        assert gate(capsys)[0] == 0

    def test_one_without_an_end_is_unproven(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run(shard="1/2", ends=False)
        two.run(shard="2/2")
        code, document = gate(capsys)
        assert (code, red(document)) == (3, [("interrupted", None)])


class TestRelease:
    def test_for_each_case_its_newest_session(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run({"trial-1::stall-v1": "not-recovered"})
        two.run(paths=[two.root / "cases" / "trial-1"])
        assert gate(capsys, "--profile=release")[0] == 0
        two.run({"trial-2::stall-v1": "not-recovered"}, paths=[two.root / "cases" / "trial-2"])
        code, document = gate(capsys, "--profile=release")
        assert (code, document["profile"], red(document)) == (1, "release", [("check-broken", "trial-2")])

    def test_a_case_that_no_session_planned_or_that_has_a_new_check(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run()
        write_case(two.root, "trial-3", [])
        write_simulation(two.root, "killed-v1")
        write_case(two.root, "trial-1", ["stall-v1", "killed-v1"])
        code, document = gate(capsys, "--profile=release")
        assert (code, red(document)) == (3, [("not-run", "trial-1"), ("not-run", "trial-3")])

    def test_a_session_without_an_end_decides_nothing(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run(ends=False)
        code, document = gate(capsys, "--profile=release")
        assert (code, red(document)) == (3, [("interrupted", None)])


class TestPlaces:
    def test_a_file_that_is_not_there_is_refused_and_not_made(self, two: Sessions, capsys: CAPTURE) -> None:
        assert main(["gate"]) == 2
        assert "Couldn't read the ledger .regcase/ledger.sqlite3: there is no such file" in capsys.readouterr().err
        two.run()
        assert main(["gate", "--ledger", two.place(), "--ledger", "nowhere.sqlite3"]) == 2
        assert "nowhere.sqlite3" in capsys.readouterr().err
        assert not (two.root / "nowhere.sqlite3").exists()

    def test_several_stay_as_they_are(self, two: Sessions, capsys: CAPTURE) -> None:
        other = two.place("other.sqlite3")
        two.run()
        two.run(ledger=other)
        held = []
        for place in (two.place(), other):
            with Ledger.open(f"sqlite:///{place}") as found:
                held.append(found.row_count())
        assert gate(capsys, "--ledger", two.place(), "--ledger", other)[0] == 0
        for place, rows in zip((two.place(), other), held, strict=True):
            with Ledger.open(f"sqlite:///{place}") as found:
                assert found.row_count() == rows

    def test_the_report_is_written_too(self, two: Sessions, capsys: CAPTURE) -> None:
        two.run()
        code, document = gate(capsys, "--report", "out/a.json")
        report = json.loads((two.root / "out" / "a.json").read_text())
        assert (code, report["gate"], len(report["attempts"])) == (0, document, 4)
        assert main(["gate", "--report", "a.odt"]) == 2
        assert "Couldn't choose a format for --report=a.odt" in capsys.readouterr().err

    @pytest.mark.parametrize("name", ["x" * 300 + ".json", "pyproject.toml/out/a.json"])
    def test_a_report_that_cannot_be_written_hides_no_decision(
        self, two: Sessions, capsys: CAPTURE, name: str
    ) -> None:
        two.run({"trial-1::stall-v1": "not-recovered"})
        assert main(["gate", "--report", name]) == 2
        said = capsys.readouterr()
        assert "FAIL      trial-1: stall-v1" in said.out
        assert "Couldn't write" in said.err
        assert "failure of regcase" not in said.err


class TestModelCalls:
    PASSES_THROUGH = '\n[replies]\nsource = "pass-through"\n'

    def test_a_case_that_a_session_may_not_run_is_a_note_and_in_a_release_red(
        self, two: Sessions, capsys: CAPTURE
    ) -> None:
        write_case(two.root, "trial-3", ["stall-v1"], more=self.PASSES_THROUGH)
        decided = two.run()
        assert [(each.code, each.red) for each in decided.reasons] == [("needs-live", False)]
        assert gate(capsys) == (0, json.loads(canonical_json(decided.to_plain())))
        code, document = gate(capsys, "--profile=release")
        assert (code, red(document)) == (3, [("not-run", "trial-3")])

    def test_live_runs_that_cannot_be_made_are_red_and_not_planned(self, two: Sessions, capsys: CAPTURE) -> None:
        write_case(two.root, "trial-3", ["stall-v1"], more=self.PASSES_THROUGH)
        pyproject = two.root / "pyproject.toml"
        pyproject.write_text(pyproject.read_text().partition("[tool.regcase.upstream]")[0])
        decided = two.run(profile="nightly", live_new=3)
        assert [each.case_id for each in decided.reasons if each.red] == ["trial-3"]
        code, document = gate(capsys)
        assert (code, red(document)) == (3, [("no-upstream", "trial-3")])
        assert document == json.loads(canonical_json(decided.to_plain()))
