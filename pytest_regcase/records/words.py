"""The closed words of the product, spelt once.

Enumeration values are hyphenated, keys are underscored; what comes from elsewhere keeps its spelling.
"""

from typing import Literal

Outcome = Literal["passed", "failed", "undetermined"]
Termination = Literal["finished", "error", "limit", "cut-off", "cancelled", "never-started"]
SaidByPerson = Literal["task_id", "harness"]
RaisedBy = Literal["agent", "supplier", "environment", "grader", "harness", "unknown"]
Expectation = Literal[
    "log_failure",
    "max_retries",
    "stop_within_seconds",
    "no_fabricated_output",
    "no_partial_submission",
    "keep_partial_patch",
    "mark_failure",
    "no_repeated_side_effect",
    "separates_causes",
]
FindingStatus = Literal["kept", "broken", "not-observable", "not-applicable"]
AttemptVerdict = Literal[
    "recovered",
    "not-recovered",
    "clean",
    "recurred",
    "failed-otherwise",
    "finished",
    "did-not-finish",
    "inconclusive",
]
InconclusiveReason = Literal[
    "not-delivered",
    "off-the-prefix",
    "control-failed",
    "no-live-supplier",
    "machinery-broke",
    "worker-crashed",
    "cut-short",
    "independence-unknown",
]
CaseState = Literal["open", "verifying", "closed", "regressed", "retired"]
TransitionKind = Literal[
    "fix", "closed", "reopened", "retired", "amended", "quarantined", "lifted", "on-probation"
]
Decision = Literal["pass", "fail", "unproven"]
StepRole = Literal["agent", "grader", "evidence", "other"]
FailureCauseWord = Literal["key_budget", "key_auth", "transient", "unknown"]
TrialStatus = Literal[
    "not_reached",
    "interrupted",
    "agent_error",
    "patch_capture_failed",
    "unscored",
    "empty_patch",
    "resolved",
    "unresolved",
]
Quality = Literal["complete", "degraded", "unscored", "agent-failed"]
Retry = Literal["now", "after-budget-reset", "never"]
RunKind = Literal["real", "controlled"]
CauseStatus = Literal["unknown", "confirmed"]
HypothesisClass = Literal[
    "deadline",
    "resource-exhaustion",
    "auth",
    "budget",
    "rate-limit",
    "overload",
    "network",
    "malformed",
    "process-death",
    "context",
    "hidden",
]
Profile = Literal["pull-request", "nightly", "release"]
ScenarioKind = Literal["control", "simulation", "live"]
EndedBy = Literal["deadline", "cap", "control-done", "cut-short"]

EXPECTATIONS: tuple[Expectation, ...] = (
    "log_failure",
    "max_retries",
    "stop_within_seconds",
    "no_fabricated_output",
    "no_partial_submission",
    "keep_partial_patch",
    "mark_failure",
)
"""In the order in which findings are listed everywhere."""
OPTIONAL_EXPECTATIONS: tuple[Expectation, ...] = ("no_repeated_side_effect",)
"""Judged on an attempt only where its case asks for them; listed behind the others."""
