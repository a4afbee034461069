"""`--regcase-max-minutes=M`: changed cases first, then in turn; what has no room is said."""

import json
import re

import pytest

from tests.plugin.gate_project import GateProject


def _run(project: GateProject, *args: str) -> tuple[int, str, list[str], list[tuple[str, str | None]]]:
    """Return exit status, header lines about the time, the cases that ran, and the reasons."""
    (project.root / "calls.jsonl").unlink(missing_ok=True)
    result = project.run(*args, "--regcase-report=a.json")
    gate = json.loads((project.root / "a.json").read_text())["gate"]
    return (
        int(result.ret),
        "; ".join(each for each in result.stdout.lines if re.match("regcase: (no room|.* min are planned)", each)),
        sorted({each["name"].split("::")[0] for each in project.calls()}),
        [(each["code"], each["case_id"]) for each in gate["reasons"]],
    )


def _takes(project: GateProject, seconds: float) -> None:
    (project.root / "script.json").write_text(json.dumps({"seconds": seconds}))


def test_what_was_never_run_comes_first_and_then_each_in_turn(project: GateProject) -> None:
    """Three cases of two attempts: 20 min by the agent's cap, and 2 min as soon as that is known."""
    for number in range(3):
        project.add_case(f"trial-{number}", ["stall-v1"])
    _takes(project, 60)
    status, header, ran, reasons = _run(project, "--regcase-max-minutes=41")
    assert (status, ran) == (1, ["trial-0", "trial-1"])
    assert reasons == [("not-run", "trial-2")]
    assert header == (
        "regcase: 40 of 41 min are planned, one after another (by the agent's cap);"
        " regcase: no room for 1 case: trial-2"
    )
    # The one that never ran is first; of the others the room is for one.
    status, header, ran, reasons = _run(project, "--regcase-max-minutes=22")
    assert (status, ran) == (0, ["trial-0", "trial-2"])
    assert reasons == [("out-of-time", "trial-1")]
    assert (
        "22 of 22 min are planned, one after another (as long as before, 2 attempts by the agent's cap)" in header
    )
    turns = [_run(project, "--regcase-max-minutes=2", *given) for given in ([], ["-n2"], [])]
    assert [ran for _, _, ran, _ in turns] == [["trial-1"], ["trial-0"], ["trial-2"]]
    assert all(status == 0 for status, *_ in turns)
    assert "2 of 2 min are planned, one after another (as long as before)" in turns[0][1]
    # A changed case has never run as it is.
    project.add_case("trial-2", ["stall-v1"], failing_step=4)
    status, _, ran, reasons = _run(project, "--regcase-max-minutes=2")
    assert (status, ran) == (0, ["trial-2"])
    assert reasons == [("out-of-time", "trial-0"), ("out-of-time", "trial-1")]


def test_no_room_for_any_case_is_not_green(project: GateProject) -> None:
    project.add_case("trial-37", [])
    status, header, ran, reasons = _run(project, "--regcase-max-minutes=0.5")
    assert (status, ran) == (pytest.ExitCode.NO_TESTS_COLLECTED, [])
    assert ("nothing-selected", None) in reasons
    assert header.endswith("no room for 1 case: trial-37")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_what_is_no_number_of_minutes_is_a_usage_error(project: GateProject, text: str) -> None:
    result = project.run(f"--regcase-max-minutes={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--regcase-max-minutes: invalid number of minutes value: '{text}'*"])
