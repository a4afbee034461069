"""A quarantined case runs, is counted and shown, and does not gate."""

import json
from xml.etree import ElementTree

import pytest

from tests.plugin.gate_project import GateProject

QUARANTINE = """
[quarantine]
owner = "somebody"
reason = "a flaky sandbox"
kind = "flaky"
since = 2026-01-01
expires = 2999-01-01
"""
REASON = "quarantined (flaky) until 2999-01-01, owner somebody: a flaky sandbox"


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_its_failure_is_shown_as_skipped_and_kept_in_the_ledger(
    project: GateProject, parallel: tuple[str, ...]
) -> None:
    project.add_case("trial-37", more=QUARANTINE)
    project.add_case("trial-38", ["stall-v1"])
    project.script({"trial-37::stall-v1": ["not-recovered"], "trial-37::killed-v1": ["inconclusive"]})
    result = project.run("-rs", "--junitxml=junit.xml", "--regcase-report=report.json", *parallel)
    result.assert_outcomes(passed=3, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "SKIPPED*cases/trial-37/case.toml*: trial-37 stall-v1: not-recovered, quarantined until 2999-01-01"
            " (owner somebody): a flaky sandbox"
        ]
    )
    assert result.ret == pytest.ExitCode.OK
    assert project.verdicts()["trial-37::stall-v1"] == ["not-recovered"]
    assert project.verdicts()["trial-37::killed-v1"] == ["inconclusive"]
    skipped = ElementTree.parse(project.root / "junit.xml").findall(".//testcase/skipped")
    assert sorted(each.get("message", "") for each in skipped) == [
        f"trial-37 {what}, quarantined until 2999-01-01 (owner somebody): a flaky sandbox"
        for what in ("killed-v1: inconclusive (not-delivered)", "stall-v1: not-recovered")
    ]
    report = json.loads((project.root / "report.json").read_text())
    made = {each["scenario"]: each["verdict"] for each in report["attempts"] if each["case_id"] == "trial-37"}
    assert (made["stall-v1"], made["killed-v1"]) == ("not-recovered", "inconclusive")
    assert {"code": "quarantined", "text": REASON} in [
        {key: each[key] for key in ("code", "text")} for each in report["gate"]["reasons"]
    ]


def test_all_quarantined_is_never_green(project: GateProject) -> None:
    project.add_case("trial-37", more=QUARANTINE)
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["UNPROVEN*"])
