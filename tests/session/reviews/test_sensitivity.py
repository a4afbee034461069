"""Bad agents against a case's expectations: which it would let pass."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.cli import main
from pytest_regcase.demo.behaviours import BEHAVIOURS
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.session.reviews import sensitivity
from pytest_regcase.session.reviews.sensitivity import Sensitivity, sensitivity_of
from tests.rules.attempt_samples import a_finding, an_attempt, findings
from tests.session.attempt_project import AttemptProject, make_project

HANGS, REFUSED = "deadline-no-answer-v1", "auth-rejected-v1"
GOOD = ("python", "-m", "pytest_regcase.demo.agent")
Attempt = Callable[[str, str], AttemptRecord]


def project(
    root: Path, expected: str = "", *, simulations: tuple[str, ...] = (HANGS,), stop: float = 6
) -> AttemptProject:
    return make_project(root, GOOD, simulations=simulations, expected=expected, stop_within_seconds=stop)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Attempt], None]:
    """Says what an attempt would have shown, by behaviour and simulation, instead of running it."""

    def script(attempt: Attempt) -> None:
        def run(
            _project: Any, _loaded: Any, _simulation: Any, plan: Any, _snapshot: Any, **_: Any
        ) -> AttemptRecord:
            return attempt(plan.key.agent, plan.key.scenario)

        monkeypatch.setattr(sensitivity, "run_attempt", run)

    return script


def breaks(*expectations: Any) -> AttemptRecord:
    return an_attempt("not-recovered" if expectations else "recovered", findings=findings(expectations))


def of(found: Sensitivity, behaviour: str) -> sensitivity.Tried:
    return next(each for each in found.tried if each.behaviour == behaviour)


@pytest.mark.slow
def test_real_bad_agents_pass_where_an_expectation_is_off_or_a_budget_high(tmp_path: Path) -> None:
    made = project(tmp_path, "log_failure = false\nmax_retries = 50", stop=8)
    found = sensitivity_of(made.project, made.loaded)
    assert {each.behaviour: each.status for each in found.tried} == {
        **dict.fromkeys(BEHAVIOURS, "caught"),
        "log-nothing": "let-pass",
        "retry-too-often": "let-pass",
        "accept-empty-answer": "not-provoked",
        "repeat-side-effects": "not-asked",
    }
    assert [gap.why for gap in of(found, "log-nothing").gaps] == ["log_failure is false"]
    assert [gap.why for gap in of(found, "retry-too-often").gaps] == ["max_retries = 50 allows its 8 retries"]
    assert of(found, "retry-for-ever").caught_by == ("stop_within_seconds",)
    assert (found.attempts, found.simulations) == (12, (HANGS,))


def test_a_behaviour_is_caught_by_any_simulation(tmp_path: Path, scripted: Callable[[Attempt], None]) -> None:
    scripted(lambda _, simulation: breaks("mark_failure") if simulation == HANGS else breaks())
    made = project(tmp_path, simulations=(HANGS, REFUSED))
    found = sensitivity_of(made.project, made.loaded)
    assert {each.status for each in found.tried} == {"caught"}
    assert found.let_pass == ()


def test_what_breaks_and_is_not_asked_for_passes(tmp_path: Path, scripted: Callable[[Attempt], None]) -> None:
    scripted(lambda *_: breaks("mark_failure"))
    made = project(tmp_path, "mark_failure = false")
    found = sensitivity_of(made.project, made.loaded)
    assert {each.status for each in found.tried} == {"let-pass"}


def test_an_optional_expectation_may_be_missing(tmp_path: Path, scripted: Callable[[Attempt], None]) -> None:
    repeated = a_finding("no_repeated_side_effect", "broken")
    scripted(lambda *_: an_attempt("not-recovered", findings=(*findings(), repeated)))
    without = project(tmp_path / "a")
    assert {each.status for each in sensitivity_of(without.project, without.loaded).tried} == {"not-asked"}
    asks = project(tmp_path / "b", "no_repeated_side_effect = true")
    assert {each.status for each in sensitivity_of(asks.project, asks.loaded).tried} == {"caught"}


@pytest.mark.parametrize(
    ("facts", "expected", "stop", "why"),
    [
        ({"max_retries": {"retries": 9}}, "max_retries = 10", 6, "max_retries = 10 allows its 9 retries"),
        ({"max_retries": {"retries": 3}}, "max_retries = 10", 6, None),
        (
            {"stop_within_seconds": {"watched_seconds": 630.0}},
            "",
            3600,
            "stop_within_seconds = 3600 allows its 630 s",
        ),
        ({"stop_within_seconds": {"stopped_seconds": 59.0}}, "", 100, None),
    ],
)
def test_a_budget_wider_than_usual_lets_pass_what_needs_it(
    tmp_path: Path,
    scripted: Callable[[Attempt], None],
    facts: dict[str, dict[str, float]],
    expected: str,
    stop: float,
    why: str | None,
) -> None:
    seen = tuple(
        each.model_copy(update={"facts": facts.get(each.expectation, {}), "status": "kept"}) for each in findings()
    )
    scripted(lambda *_: an_attempt("inconclusive", reason="cut-short", findings=seen))
    made = project(tmp_path, expected, stop=stop)
    found = of(sensitivity_of(made.project, made.loaded), "retry-for-ever")
    assert [gap.why for gap in found.gaps] == ([] if why is None else [why])
    assert found.status == ("not-provoked" if why is None else "let-pass")


def test_an_attempt_that_proves_nothing_is_said(tmp_path: Path, scripted: Callable[[Attempt], None]) -> None:
    scripted(lambda *_: an_attempt("inconclusive", reason="not-delivered", says="no request came"))
    made = project(tmp_path)
    found = sensitivity_of(made.project, made.loaded)
    assert len(found.not_shown) == len(BEHAVIOURS)
    assert found.tried[0].troubles == (f"{HANGS}: no request came",)


def test_simulations_that_mean_nothing_to_these_agents_are_left_out(
    tmp_path: Path, scripted: Callable[[Attempt], None]
) -> None:
    scripted(lambda *_: breaks("mark_failure"))
    made = project(tmp_path / "a", simulations=(HANGS, "keep-alive-only-v1"))
    found = sensitivity_of(made.project, made.loaded)
    assert found.simulations == (HANGS,)
    assert "only an event stream" in found.left_out["keep-alive-only-v1"]
    none = project(tmp_path / "b", simulations=("keep-alive-only-v1",))
    with pytest.raises(
        UsageRefused, match=r"it has no simulation to try them under \(keep-alive-only-v1: only an"
    ):
        sensitivity_of(none.project, none.loaded)


class TestCommand:
    @pytest.fixture
    def here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        project(tmp_path, "log_failure = false")
        monkeypatch.chdir(tmp_path)

    @pytest.mark.usefixtures("here")
    def test_it_names_who_would_pass_and_exits_1(
        self, scripted: Callable[[Attempt], None], capsys: pytest.CaptureFixture[str]
    ) -> None:
        scripted(lambda name, _: breaks("log_failure") if name == "log-nothing" else breaks("mark_failure"))
        assert main(["check", "--sensitivity", "calc-step-3"]) == 1
        printed = capsys.readouterr()
        assert "LET PASS: log_failure is false" in printed.out
        assert "This case would call bad agents recovered: log-nothing." in printed.out
        assert max(map(len, printed.out.splitlines())) <= 80
        assert "takes a minute" in printed.err

    @pytest.mark.usefixtures("here")
    def test_a_case_that_can_fail_exits_0_and_one_that_is_not_shown_3(
        self, scripted: Callable[[Attempt], None], capsys: pytest.CaptureFixture[str]
    ) -> None:
        scripted(lambda *_: breaks("mark_failure"))
        assert main(["check", "--sensitivity", "calc-step-3"]) == 0
        assert "This case can fail" in capsys.readouterr().out
        scripted(lambda *_: an_attempt("inconclusive", reason="not-delivered", says="no request came"))
        assert main(["check", "--sensitivity", "calc-step-3"]) == 3
        assert "NOT SHOWN" in capsys.readouterr().out

    @pytest.mark.usefixtures("here")
    def test_json_is_one_document(
        self, scripted: Callable[[Attempt], None], capsys: pytest.CaptureFixture[str]
    ) -> None:
        scripted(lambda *_: breaks("log_failure"))
        assert main(["check", "--sensitivity", "calc-step-3", "--json"]) == 1
        document = json.loads(capsys.readouterr().out)
        assert (document["schema"], document["case_id"], len(document["tried"])) == (1, "calc-step-3", 12)
        assert document["tried"][0]["gaps"][0]["expectation"] == "log_failure"

    @pytest.mark.usefixtures("here")
    def test_it_takes_no_paths_beside_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "--sensitivity", "calc-step-3", "cases"]) == 2
        assert "without PATHS" in capsys.readouterr().err
