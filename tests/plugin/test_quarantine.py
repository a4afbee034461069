"""A quarantined case runs, is counted and shown, and does not gate."""

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


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_its_failure_is_shown_as_skipped_and_kept_in_the_ledger(
    project: GateProject, parallel: tuple[str, ...]
) -> None:
    project.add_case("trial-37", more=QUARANTINE)
    project.add_case("trial-38", ["stall-v1"])
    project.script({"trial-37::stall-v1": ["not-recovered"], "trial-37::killed-v1": ["inconclusive"]})
    result = project.run("-rs", *parallel)
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


def test_all_quarantined_is_never_green(project: GateProject) -> None:
    project.add_case("trial-37", more=QUARANTINE)
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["UNPROVEN*"])
