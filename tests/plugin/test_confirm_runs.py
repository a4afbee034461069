"""A failed check is run twice more, always both; what proves nothing is tried once more; no other rule applies."""

import json

import pytest

from tests.plugin.gate_project import GateProject

BAD, GOOD, NOTHING = "not-recovered", "recovered", "inconclusive"

TABLE = [
    ([GOOD], ["passed"], "passed"),
    ([BAD, GOOD, GOOD], ["rerun", "rerun", "passed"], "flaky"),
    ([BAD, GOOD, BAD], ["rerun", "rerun", "failed"], "broken"),
    ([BAD, BAD, GOOD], ["rerun", "rerun", "failed"], "broken"),
    ([BAD, BAD, BAD], ["rerun", "rerun", "failed"], "broken"),
    ([NOTHING, GOOD], ["rerun", "passed"], "passed"),
    ([NOTHING, NOTHING], ["rerun", "failed"], "inconclusive"),
    ([NOTHING, BAD, GOOD, BAD], ["rerun", "rerun", "rerun", "failed"], "broken"),
    ([NOTHING, BAD, GOOD, GOOD], ["rerun", "rerun", "rerun", "passed"], "flaky"),
    (["raise", GOOD], ["rerun", "passed"], "passed"),
    (["fail", "raise"], ["rerun", "failed"], "inconclusive"),
]
"""What the attempts of a check show, how pytest's reports of it end up, what the gate calls it."""

NOTES_OUTCOMES = """
def pytest_runtest_logreport(report):
    if report.when == "call" and not hasattr(report, "node"):
        import os
        name = "outcomes-" + os.environ.get("PYTEST_XDIST_WORKER", "main")
        with open(name, "a") as file:
            file.write(report.nodeid.split("::")[-2] + " " + report.outcome + "\\n")
"""


def _cases(project: GateProject) -> dict[str, list[str]]:
    """One case with a simulation for every line of the table."""
    script = {}
    for index, (verdicts, _, _) in enumerate(TABLE):
        project.add_simulation(f"row-{index}")
        script[f"trial-37::row-{index}"] = verdicts
    project.add_case("trial-37", [f"row-{index}" for index in range(len(TABLE))])
    project.script(script)
    conftest = project.root / "conftest.py"
    conftest.write_text(conftest.read_text() + NOTES_OUTCOMES)
    return script


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_every_try_is_its_own_report_and_row(project: GateProject, parallel: tuple[str, ...]) -> None:
    script = _cases(project)
    project.run(*parallel, "-o", "addopts=--reruns 5 --reruns-delay 9", "--regcase-report=report.json")
    ours = {"raise": NOTHING, "fail": NOTHING}
    assert {name: each for name, each in project.verdicts().items() if "control" not in name} == {
        name: [ours.get(each, each) for each in verdicts] for name, verdicts in script.items()
    }
    seen: dict[str, list[str]] = {}
    for path in project.root.glob("outcomes-*"):
        for line in path.read_text().splitlines():
            scenario, outcome = line.split()
            seen.setdefault(scenario, []).append(outcome)
    assert {scenario: each for scenario, each in seen.items() if scenario != "control"} == {
        f"row-{index}": outcomes for index, (_, outcomes, _) in enumerate(TABLE)
    }
    (case,) = json.loads((project.root / "report.json").read_text())["gate"]["cases"]
    results = {each["name"]: each["result"] for each in case["scenarios"] if each["name"] != "control"}
    assert results == {f"row-{index}": result for index, (_, _, result) in enumerate(TABLE)}
    tries = {row.scenario: [] for row in project.rows()}  # type: dict[str, list[int]]
    for row in project.rows():
        tries[row.scenario].append(row.try_number)
    assert all(each == list(range(len(each))) for each in tries.values())


def test_as_many_confirm_runs_as_are_configured(project: GateProject) -> None:
    pyproject = project.root / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("[tool.regcase]\n", "[tool.regcase]\nconfirm = 3\n"))
    project.add_case("trial-37", ["stall-v1", "killed-v1"])
    script = {"trial-37::stall-v1": [BAD, GOOD, GOOD, GOOD], "trial-37::killed-v1": [BAD, GOOD, GOOD, BAD]}
    project.script(script)
    result = project.run()
    assert {name: each for name, each in project.verdicts().items() if "control" not in name} == script
    result.stdout.fnmatch_lines(
        ["Flaky: failed once, then passed all 3 confirm runs", "FAIL (profile pull-request, confirm:3): *"]
    )


def test_a_control_that_does_not_finish_gets_one_more_try(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.script({"trial-37::control": ["did-not-finish"] * 9})
    project.run()
    assert project.verdicts() == {"trial-37::control": ["did-not-finish", "did-not-finish"]}


def test_without_rerunfailures_a_failed_check_is_red_and_not_confirmed(project: GateProject) -> None:
    project.add_case("trial-37", ["stall-v1"])
    project.script({"trial-37::stall-v1": [BAD, GOOD, GOOD]})
    result = project.run("-p", "no:rerunfailures", "-W", "error", "--strict-markers")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*not-recovered; the check is broken, not confirmed*", "FAIL (*"])
    assert project.verdicts()["trial-37::stall-v1"] == [BAD]
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_an_exception_of_ours_is_shown_with_its_place(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.script({"trial-37::control": ["raise", "raise"]})
    result = project.run()
    result.stdout.fnmatch_lines(
        [
            "trial-37 control, try 2: inconclusive (machinery-broke); the check did not happen",
            "  RuntimeError: a bug of ours",
            "    at conftest.py:* in _do",
        ]
    )


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--force-reruns", "2"), "*--force-reruns cannot be combined with --regcase*"),
        (("--reruns-mode", "append"), "*--reruns-mode=append cannot be combined with --regcase*"),
        (("--dist", "each", "--tx", "popen"), "*--dist=each cannot be combined with --regcase*"),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
def test_options_that_would_repeat_attempts_are_usage_errors(
    project: GateProject, args: tuple[str, ...], says: str
) -> None:
    project.add_case("trial-37")
    result = project.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])
    assert project.calls() == []
