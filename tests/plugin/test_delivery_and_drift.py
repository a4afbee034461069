"""What a session says of a fault that never fired, and of an agent that is not the recorded one any more."""

from typing import Any

import pytest

from tests.plugin.real_project import EDIT, RealProject, say

LATE = """\
schema = 1
id = "late-v1"
hypothesis = "auth"
title = "the key is rejected at a step that the run does not have"
cause_status = "hypothesized"
source_event = "fixture-run"
[fault]
kind = "key_rejected"
at = 9
"""


def result(step: int, text: str) -> dict[str, Any]:
    return {"step": step, "role": "tool", "tool_call_id": f"call_{step}", "text": text}


SCRIPT = (
    say(1, "bash", command="cat code.py") | {"offered_tools": ["bash", "finish"]},
    result(1, "number = 0\n"),
    say(2, "bash", command=EDIT),
    result(2, "edited\n"),
    say(3, "bash", command="cat code.py"),
    result(3, "number = 2\n"),
)
"""Three steps and the closing reply. The second result is another one today, and so was the first file."""


@pytest.fixture
def real(pytester: pytest.Pytester) -> RealProject:
    return RealProject(pytester)


def test_a_fault_at_step_9_of_a_run_of_4_steps_leaves_the_gate_unproven(real: RealProject) -> None:
    (real.root / "fixtures" / "late-v1.toml").write_text(LATE)
    real.add_real_case("trial-37", ["late-v1"], script=SCRIPT)
    ran = real.run("--regcase-profile=pull-request")
    assert ran.ret == 1
    assert real.verdicts() == {"trial-37::control": ["finished"], "trial-37::late-v1": ["inconclusive"] * 2}
    late = [row for row in real.rows() if row.scenario == "late-v1"]
    for row in late:
        assert (row.reason, row.wire.delivered, row.wire.faulted_requests) == ("not-delivered", False, 0)
        assert row.says is not None
        assert row.says.startswith("no request met the fault")
        assert row.wire.requests_a_step == (1, 1, 1, 1)
    assert [row.try_number for row in late] == [0, 1]
    text = " ".join(ran.stdout.str().split())
    assert "UNPROVEN (profile pull-request" in text
    assert "trial-37, late-v1: 2 attempts (2 inconclusive)" in text

    # The recording differs from what the agent meets today; that decides nothing, and is said in one line.
    told = (
        "the agent offers submit, which the recorded one did not, and no longer offers finish",
        "2 tool results differ from the recording",
    )
    assert {row.wire.differences for row in real.rows()} == {told}
    assert f"Today's agent beside the recording trial-37: {'; '.join(told)}" in text
