"""`--regcase-report`."""

import json

import jsonschema
import pytest

from pytest_regcase.reporters.json_schemas import document_schema
from tests.plugin.gate_project import GateProject


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_it_holds_the_decision_and_every_attempt(project: GateProject, parallel: tuple[str, ...]) -> None:
    project.add_case("trial-37")
    project.script({"trial-37::stall-v1": ["not-recovered"] * 3})
    project.run("--regcase-report=out/decision.json", "--regcase-report=out/comment.md", *parallel)
    document = json.loads((project.root / "out" / "decision.json").read_text())
    assert document["gate"]["decision"] == "fail"
    assert len(document["attempts"]) == 5
    jsonschema.Draft202012Validator(document_schema("report")).validate(document)
    assert (project.root / "out" / "comment.md").read_text().startswith("## regcase: FAIL\n")
    assert sorted(each.name for each in (project.root / "out").iterdir()) == ["comment.md", "decision.json"]


def test_equal_facts_give_equal_decisions_serially_and_under_xdist(project: GateProject) -> None:
    project.add_case("trial-37")
    project.add_case("trial-38")
    verdicts = {"trial-37::stall-v1": ["not-recovered"] * 3, "trial-38::control": ["inconclusive", "finished"]}
    decisions = []
    for name, parallel in (("a.json", ()), ("b.json", ("-n", "2"))):
        project.script(verdicts)
        (project.root / "calls.jsonl").unlink(missing_ok=True)
        project.run(f"--regcase-report={name}", *parallel)
        decisions.append(json.loads((project.root / name).read_text())["gate"])
    assert decisions[0] == decisions[1]


def test_an_unknown_suffix_is_a_usage_error_before_anything_runs(project: GateProject) -> None:
    project.add_case("trial-37")
    result = project.run("--regcase-report=decision.pdf")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no reporter has the suffix '.pdf'*", "*Known: *.json*"])
    assert project.calls() == []


def test_a_report_that_cannot_be_written_makes_the_run_red(project: GateProject) -> None:
    project.add_case("trial-37", [])
    (project.root / "blocked").write_text("a file where a folder must be")
    result = project.run("--regcase-report=blocked/decision.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["Couldn't write the report*", "*blocked/decision.json*", "PASS *", "but this run is red: *"]
    )
