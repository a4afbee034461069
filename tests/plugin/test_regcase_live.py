"""`--regcase-live=N`: live attempts of cases with a claimed fix."""

import json

import pytest

from tests.plugin.gate_project import GateProject

NIGHTLY = "--regcase-profile=nightly"


def _live(project: GateProject) -> list[tuple[int, str]]:
    return sorted((row.run, row.verdict) for row in project.rows() if row.scenario == "live")


def _clear_calls(project: GateProject) -> None:
    (project.root / "calls.jsonl").unlink(missing_ok=True)


def test_none_is_planned_without_it_or_without_a_claimed_fix(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.run(NIGHTLY, "--regcase-live=3")
    project.claim_fix("trial-37")
    project.run(NIGHTLY)
    assert _live(project) == []


def test_at_most_n_new_runs_a_case_counted_over_sessions(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    first = project.run(NIGHTLY, "--regcase-live=3", "-v")
    first.stdout.fnmatch_lines(
        [
            "regcase: profile nightly; 1 case, 1 check, 3 live runs",
            "regcase: 3 live runs, at most 30 min one after another (by the agent's cap)",
            "cases/trial-37/case.toml::live::run-001 PASSED*",
            "cases/trial-37/case.toml::live::run-003 PASSED*",
        ]
    )
    project.run(NIGHTLY, "--regcase-live=2")
    assert _live(project) == [(number, "clean") for number in range(1, 6)]


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_a_recurrence_that_the_plan_allows_stops_nothing_and_the_next_one_does(
    project: GateProject, parallel: tuple[str, ...]
) -> None:
    pyproject = project.root / "pyproject.toml"
    text = pyproject.read_text().replace("[tool.regcase]\n", '[tool.regcase]\nplan = "allow-one"\n')
    pyproject.write_text(text)
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    verdicts = ["clean", "recurred", "clean", "recurred", *["clean"] * 4]
    project.script({"trial-37::live": verdicts})
    first = project.run(NIGHTLY, "--regcase-live=3", "-rs", *parallel)
    assert first.ret == pytest.ExitCode.OK
    assert _live(project) == list(enumerate(verdicts[:3], 1))
    first.stdout.fnmatch_lines(["SKIPPED*trial-37::live::run-002: recurred, which plan allow-one allows"])
    result = project.run(NIGHTLY, "--regcase-live=4", *parallel)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert _live(project)[:4] == list(enumerate(verdicts[:4], 1))
    result.stdout.fnmatch_lines(["*trial-37: the symptom came back in live run 4; red until a new fix", "FAIL *"])
    if not parallel:
        assert len(_live(project)) == 4


def test_the_price_is_said_where_it_is_configured(project: GateProject) -> None:
    path = project.root / "pyproject.toml"
    path.write_text(path.read_text().replace("[tool.regcase]\n", "[tool.regcase]\ncost_per_attempt = 0.25\n"))
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    result = project.run(NIGHTLY, "--regcase-live=3", "--collect-only")
    result.stdout.fnmatch_lines(["*3 live runs, *about 0.75 by the configured cost_per_attempt"])


@pytest.mark.parametrize("parallel", [(), ("-n", "2"), ("-n", "2", "--dist", "worksteal")], ids=" ".join)
def test_a_recurrence_stops_the_runs_behind_it_and_no_others(
    project: GateProject, parallel: tuple[str, ...]
) -> None:
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    verdicts = ["clean"] * 12
    verdicts[5] = "recurred"
    project.script({"trial-37::live": verdicts})
    result = project.run(NIGHTLY, "--regcase-live=12", "-rs", "--regcase-report=a.json", *parallel)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    live = _live(project)
    # Every lower run is made; of the higher ones only what was in flight.
    assert live[:6] == [(1, "clean"), (2, "clean"), (3, "clean"), (4, "clean"), (5, "clean"), (6, "recurred")]
    result.stdout.fnmatch_lines(["SKIPPED*not run: run 6 recurred"])
    gate = json.loads((project.root / "a.json").read_text())["gate"]
    assert gate["decision"] == "fail"
    assert [each["code"] for each in gate["reasons"] if each["red"]] == ["recurred"]


def test_the_next_session_is_still_red_though_nothing_is_run(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    project.script({"trial-37::live": ["clean", "recurred"]})
    project.run(NIGHTLY, "--regcase-live=4")
    made = _live(project)
    again = project.run(NIGHTLY, "--regcase-live=4")
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    again.stdout.fnmatch_lines(["*live run 2*", "FAIL (*"])
    assert _live(project) == made


def test_a_failure_that_the_case_passes_over_is_shown_and_not_red(project: GateProject) -> None:
    project.add_case("trial-37", [], '\n[expected_recovery]\nother_failures = "pass-over"\n')
    project.claim_fix("trial-37")
    project.script({"trial-37::live": ["failed-otherwise", "clean"]})
    result = project.run(NIGHTLY, "--regcase-live=2", "-rs")
    assert result.ret == pytest.ExitCode.OK
    assert _live(project) == [(1, "failed-otherwise"), (2, "clean")]
    result.stdout.fnmatch_lines(["SKIPPED*trial-37::live::run-001: failed-otherwise, which the case allows"])


@pytest.mark.parametrize("verdict", ["failed-otherwise", "inconclusive"])
def test_what_is_not_clean_is_red_and_not_repeated(project: GateProject, verdict: str) -> None:
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    project.script({"trial-37::live": ["clean", verdict]})
    result = project.run(NIGHTLY, "--regcase-live=2", "-o", "addopts=--reruns 2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert _live(project) == [(1, "clean"), (2, verdict)]


def test_the_29th_clean_run_completes_the_count_over_two_sessions(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    first = project.run(NIGHTLY, "--regcase-live=20")
    assert first.ret == pytest.ExitCode.OK
    first.stdout.fnmatch_lines(["*20 of 29*"])
    second = project.run(NIGHTLY, "--regcase-live=20")
    assert second.ret == pytest.ExitCode.OK
    second.stdout.fnmatch_lines(["*29 of 29*"])
    assert _live(project) == [(number, "clean") for number in range(1, 30)]


def test_pull_request_makes_no_model_call(project: GateProject) -> None:
    project.add_case("trial-37", [])
    result = project.run("--regcase-live=3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--regcase-live=3 needs --regcase-profile=nightly*"])


@pytest.mark.parametrize("value", ["-1", "many"])
def test_another_number_is_a_usage_error(project: GateProject, value: str) -> None:
    result = project.run(NIGHTLY, f"--regcase-live={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--regcase-live: invalid number of attempts value: '{value}'*"])


def test_without_a_supplier_none_is_planned_and_that_is_said_first(project: GateProject) -> None:
    pyproject = project.root / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().partition("[tool.regcase.upstream]")[0])
    project.add_case("trial-37", [])
    project.add_case("trial-38", [])
    project.claim_fix("trial-37")
    result = project.run(NIGHTLY, "--regcase-live=3")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "regcase: profile nightly; 2 cases, 2 checks",
            "regcase: no live run can be made, so none is planned: [[]tool.regcase.upstream] is not configured;*",
            "collected 2 items",
            "*UNPROVEN  trial-37: live runs were asked for and cannot be made:*",
            "UNPROVEN (*",
        ]
    )
    assert _live(project) == []
    assert project.run(NIGHTLY).ret == pytest.ExitCode.OK


def test_the_time_is_that_of_the_runs_before(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    (project.root / "script.json").write_text(json.dumps({"seconds": 90}))
    project.run(NIGHTLY, "--regcase-live=2")
    result = project.run(NIGHTLY, "--regcase-live=4", "--collect-only")
    result.stdout.fnmatch_lines(["regcase: 4 live runs, about 6 min one after another (as long as before)"])
