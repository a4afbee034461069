"""A worker of pytest-xdist that dies: its attempt proves nothing, and no later one turns that green."""

import pytest

from tests.plugin.gate_project import GateProject


@pytest.mark.parametrize(
    "dist",
    [
        "load",
        "loadscope",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("worksteal", "loadfile", "loadgroup")),
    ],
)
def test_a_crashed_attempt_is_a_row_and_makes_the_run_unproven(project: GateProject, dist: str) -> None:
    for number in range(3):
        project.add_case(f"trial-{number}", ["stall-v1"])
    project.script({"trial-1::stall-v1": ["die"]})
    result = project.run("-n", "2", "--dist", dist, "-v")
    result.stdout.fnmatch_lines(["*= regcase =*", "UNPROVEN*"])
    assert result.ret != pytest.ExitCode.OK
    crashed = [row for row in project.rows() if row.reason == "worker-crashed"]
    assert [(row.case_id, row.scenario, row.try_number) for row in crashed] == [("trial-1", "stall-v1", 0)]
    # What ran again after the crash is a row of its own, and passing is not how it ends.
    result.stdout.no_fnmatch_line("*PASSED cases/trial-1/case.toml::stall-v1::check*")


def test_a_crash_in_a_confirm_run_keeps_every_row(project: GateProject) -> None:
    project.add_case("trial-1", ["stall-v1"])
    project.script({"trial-1::stall-v1": ["not-recovered", "die"]})
    project.run("-n", "1")
    rows = [row for row in project.rows() if row.scenario == "stall-v1"]
    assert [(row.try_number, row.verdict, row.reason) for row in rows][:2] == [
        (0, "not-recovered", None),
        (1, "inconclusive", "worker-crashed"),
    ]
    assert [row.try_number for row in rows] == list(range(len(rows)))


def test_a_limit_of_the_users_stays(project: GateProject) -> None:
    project.add_case("trial-1", ["stall-v1"])
    project.script({"trial-1::stall-v1": ["die"]})
    result = project.run("-n", "1", "--dist", "load", "--max-worker-restart", "0")
    result.stdout.fnmatch_lines(["*worker gw0 crashed and worker restarting disabled*"])
    assert [row.reason for row in project.rows() if row.scenario == "stall-v1"] == ["worker-crashed"]


def test_a_live_run_that_crashed_is_not_made_again(project: GateProject) -> None:
    project.add_case("trial-1", [])
    project.claim_fix("trial-1")
    project.script({"trial-1::live": ["clean", "die", "clean"]})
    project.run("-n", "1", "--regcase-profile=nightly", "--regcase-live=3")
    live = sorted((row.run, row.verdict) for row in project.rows() if row.scenario == "live")
    assert live == [(1, "clean"), (2, "inconclusive"), (3, "clean")]
