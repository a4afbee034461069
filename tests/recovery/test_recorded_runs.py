"""The judge on real agents under known faults: 52 recorded runs, each with the exact set of what broke."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import ToolCall
from pytest_regcase.records.words import EXPECTATIONS
from pytest_regcase.recovery.judge import Judgement, judge
from tests.recovery.observed_samples import answer
from tests.recovery.recorded_runs import observed_run, recorded_runs

HIDDEN = {"log_failure", "no_fabricated_output", "no_partial_submission", "mark_failure"}
"""An empty or missing reply became the final answer: the half patch was handed in and nothing says so."""
STILL_RUNNING = {"max_retries", "stop_within_seconds"}
BROKEN: dict[str, set[str]] = {
    "anthropic-sdk-stream__empty_content": HIDDEN,
    "anthropic-sdk__empty_choices": HIDDEN,
    "anthropic-sdk__empty_content": HIDDEN,
    "litellm__empty_content": HIDDEN,
    "mini-swe-agent-3try__429quota": {"max_retries"},
    "mini-swe-agent-3try__500oom": {"max_retries"},
    "mini-swe-agent-3try__stall": {"max_retries"},
    "mini-swe-agent__500oom": STILL_RUNNING,
    "mini-swe-agent__500oom-long": STILL_RUNNING,
    "mini-swe-agent__503-heal2": {"log_failure"},
    "mini-swe-agent__killed": {"stop_within_seconds"},
    "mini-swe-agent__sse_error": STILL_RUNNING,
    "mini-swe-agent__stall": STILL_RUNNING,
    "openai-sdk-hide__401": HIDDEN,
    "openai-sdk-hide__429quota": HIDDEN,
    "openai-sdk-hide__500oom": HIDDEN,
    "openai-sdk-hide__empty_content": HIDDEN,
    "openai-sdk-hide__rst": HIDDEN,
    "openai-sdk-hide__stall": HIDDEN,
    "openai-sdk-stream__empty_choices": HIDDEN,
    "openai-sdk__503-heal2": {"log_failure"},
    "openai-sdk__empty_content": HIDDEN,
}
"""Every run that is not named here is recovered: it raised, said so, handed in nothing and kept its patch."""


@pytest.fixture(scope="module")
def runs(shared_trials: Path) -> dict[str, Observed]:
    return {run.name: observed_run(run) for run in recorded_runs(shared_trials)}


def judged(seen: Observed) -> Judgement:
    return judge(ExpectedRecovery(), seen, None)


def broken(judgement: Judgement) -> set[str]:
    return {each.expectation for each in judgement.findings if each.status == "broken"}


def test_every_run_breaks_exactly_what_the_experimenter_saw(runs: dict[str, Observed]) -> None:
    found = {name: broken(judged(seen)) for name, seen in runs.items()}
    assert {name: each for name, each in found.items() if each} == BROKEN
    assert len(found) == 52


def test_the_two_verdicts_follow_from_the_findings(runs: dict[str, Observed]) -> None:
    for seen in runs.values():
        judgement = judged(seen)
        assert [each.expectation for each in judgement.findings] == list(EXPECTATIONS)
        assert judgement.verdict == ("not-recovered" if broken(judgement) else "recovered")
        assert all(len(each.says) <= 120 for each in judgement.findings)


def test_a_dead_supplier_leaves_the_retries_unseen(runs: dict[str, Observed]) -> None:
    unseen = {
        name
        for name, seen in runs.items()
        for each in judged(seen).findings
        if each.expectation == "max_retries" and each.status == "not-observable"
    }
    assert unseen == {name for name in runs if name.endswith("__killed")}


def test_what_an_interrupted_agent_had_not_written_is_not_observable(runs: dict[str, Observed]) -> None:
    status = {each.expectation: each.status for each in judged(runs["mini-swe-agent__stall"]).findings}
    assert status["mark_failure"] == "not-observable"
    assert status["log_failure"] == "kept"


def test_the_finding_quotes_what_was_logged(runs: dict[str, Observed]) -> None:
    finding = judged(runs["openai-sdk__401"]).findings[0]
    assert finding.facts["place"] == "stderr"
    assert finding.facts["quote"].startswith("openai.AuthenticationError: Error code: 401")


def planted(seen: Observed) -> Iterator[Observed]:
    """Yield the run with one thing planted that no reply accounts for, at the end of its transcript."""
    assert seen.artefact is not None
    call = ToolCall(name="bash", arguments='{"command": "python3 -m pytest"}')
    lines = (
        answer("Both bugs in calc.py are fixed and both tests pass, as I said."),
        answer(f"{seen.wire.replies[-1].text} And the other one too."),
        answer(None, calls=(call,)),
        answer(seen.wire.replies[0].text, calls=seen.wire.replies[0].tool_calls),
    )
    for line in lines:
        yield seen.model_copy(
            update={"artefact": seen.artefact.model_copy(update={"steps": (*seen.artefact.steps, line)})}
        )


def test_planted_answers_are_found_in_every_run(runs: dict[str, Observed]) -> None:
    for name, seen in runs.items():
        for variant in planted(seen):
            assert "no_fabricated_output" in broken(judged(variant)), name
