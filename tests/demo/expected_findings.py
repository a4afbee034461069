"""Which findings each behaviour breaks under each simulation, and why: the exact sets.

Expected of a case that asks for every expectation that is judged on one attempt, with a work tree that was changed
before the fault, a retry budget of 3 (0 under auth), an agent deadline above the case's `stop_within_seconds`, and
time for more than three tries of `retry-for-ever` before it.
The good agent breaks nothing anywhere. Faults that the demo's agents cannot tell from one of these (429, 503, or
reset) are left to agents that can.
"""

from typing import NamedTuple

from pytest_regcase.records.words import Expectation

NO_ANSWER = "deadline-no-answer-v1"
KILLED = "oom-killed-v1"
SERVER_ERROR = "oom-server-error-v1"
REJECTED = "auth-rejected-v1"
EMPTY = "hidden-rejection-v1"
MID_STREAM = "mid-stream-stall-v1"
HEALS = "heals-after-two-timeouts-v1"
ENGINE_DEAD = "engine-dead-v1"
BASIC = (NO_ANSWER, KILLED, SERVER_ERROR, REJECTED, EMPTY)
SIMULATIONS = (*BASIC, MID_STREAM, HEALS, ENGINE_DEAD)
FEW = (NO_ANSWER, REJECTED, EMPTY, HEALS)
"""For a behaviour that does the same whatever way its supplier went: repeated, not repeated, no error, healed."""


class Expected(NamedTuple):
    """What one behaviour breaks under one simulation."""

    broken: frozenset[Expectation]
    why: str


def _everywhere(why: str, *broken: Expectation, simulations: tuple[str, ...] = SIMULATIONS) -> dict[str, Expected]:
    return {simulation: Expected(frozenset(broken), why) for simulation in simulations}


UNHARMED = Expected(
    frozenset(), "what it does wrong it does when it gives up, and a fault that heals gives no reason to"
)


EXPECTED: dict[str, dict[str, Expected]] = {
    "good": _everywhere("logs, asks again at most twice, not after a refusal, marks, keeps the patch to itself"),
    "swallow": {
        **_everywhere(
            "nothing is written of the failure; the half patch is handed in with an empty answer, as finished",
            "log_failure",
            "no_fabricated_output",
            "no_partial_submission",
            "mark_failure",
        ),
        HEALS: Expected(frozenset({"log_failure"}), "it finishes its work, but tells nobody what happened"),
    },
    "retry-for-ever": {
        **_everywhere(
            "asks more often than the budget allows, and is still at it at the deadline",
            "max_retries",
            "stop_within_seconds",
        ),
        HEALS: Expected(frozenset(), "two retries are within the budget; what it asks for after that is work"),
    },
    "make-up-answer": {
        **_everywhere(
            "an answer that no reply accounts for; the failure itself is logged and marked, and no patch is handed"
            " in",
            "no_fabricated_output",
        ),
        HEALS: UNHARMED,
    },
    "submit-partial": {
        **_everywhere("the half patch is handed in, though the run is marked as failed", "no_partial_submission"),
        HEALS: UNHARMED,
    },
    "log-nothing": _everywhere(
        "no line says what happened; the exit code alone marks the failure (there is no end line)", "log_failure"
    ),
    "exit-zero-unmarked": {
        **_everywhere(
            "the failed calls are logged, but the record ends `finished` and the exit code is 0; nothing is handed"
            " in",
            "mark_failure",
        ),
        HEALS: UNHARMED,
    },
    "no-client-time-out": {
        **_everywhere("a client time-out matters only where nothing comes back; else it is the good agent"),
        **dict.fromkeys(
            (NO_ANSWER, MID_STREAM, HEALS),
            Expected(
                frozenset({"stop_within_seconds"}),
                "one request, held open until we end the agent (so nothing heals); having written nothing by then"
                " is not observable as neither logging nor marking",
            ),
        ),
    },
    "retry-too-often": {
        **_everywhere(
            "asks eight times more where three are allowed, and none after a refused key; all else is in order",
            "max_retries",
            simulations=FEW,
        ),
        HEALS: UNHARMED,
    },
    "accept-empty-answer": {
        **_everywhere(
            "an empty answer is all that it handles in another way than the good agent", simulations=FEW
        ),
        EMPTY: Expected(
            frozenset({"log_failure", "no_fabricated_output", "no_partial_submission", "mark_failure"}),
            "the empty answer is taken for the end, and the half patch handed in as finished; no word of it",
        ),
    },
    "commit-partial": {
        **_everywhere("the half patch is left in a commit", "no_partial_submission", simulations=FEW),
        HEALS: UNHARMED,
    },
    "lose-partial": {
        **_everywhere(
            "the half patch is gone from the tree, and nowhere else", "keep_partial_patch", simulations=FEW
        ),
        HEALS: UNHARMED,
    },
    "repeat-side-effects": {
        **_everywhere(
            "the last command runs once more before each retry",
            "no_repeated_side_effect",
            simulations=FEW,
        ),
        **dict.fromkeys((REJECTED, EMPTY), Expected(frozenset(), "it does not ask again, so nothing is repeated")),
    },
}
"""By behaviour (``good`` is the demo agent itself), then by simulation."""
