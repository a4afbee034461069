"""What public agents do under eight simulations: how often they ask, what they raise, how they end, what breaks.

Numbers of requests are those of recorded runs of the same versions where there is one; ``measured`` says that
there is none, and the number is what was seen here. In the recorded runs, too, the fault met the third request for
good, and a client waited 3 s for an answer.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pytest_regcase.records.words import Expectation

STALL = "deadline-no-answer-v1"
KILLED = "oom-killed-v1"
REJECTED = "auth-rejected-v1"
QUOTA = "quota-exhausted-v1"
RATE = "rate-limited-v1"
OUT_OF_MEMORY = "oom-server-error-v1"
EMPTY_CHOICES = "empty-choices-v1"
EMPTY_ANSWER = "hidden-rejection-v1"
SIMULATIONS = (STALL, KILLED, REJECTED, QUOTA, RATE, OUT_OF_MEMORY, EMPTY_CHOICES, EMPTY_ANSWER)


class Cell(NamedTuple):
    """What one agent does under one simulation."""

    requests: int
    """Faulted requests, as the supplier counts them."""
    connects: int | None
    """Connects to the dead port after that, as the agent's process notes them; None: the supplier is there."""
    by_the_client: int
    """Retries that the client library makes by itself, by its own header."""
    raises: str | None
    """The exception that the last line of stderr names."""
    code: int
    """The exit code."""
    broken: frozenset[Expectation]
    """Of a retry budget of 3 (0 under auth) and a minute to stop."""
    why: str


NOTHING: frozenset[Expectation] = frozenset()
TOO_OFTEN: frozenset[Expectation] = frozenset({"max_retries"})
PASSED_FOR_AN_ANSWER: frozenset[Expectation] = frozenset(
    {"log_failure", "no_fabricated_output", "no_partial_submission", "mark_failure"}
)
_LITELLM = "litellm.exceptions."
_PYDANTIC = "pydantic_ai.exceptions."
_TWO_TRIES = "two tries of the harness, three requests of the openai client each (reported: nine in three tries)"
_SDK = "one request and the two retries of the openai client, which waits between them"

REPORTED: Mapping[str, Mapping[str, Cell]] = {
    # With MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT = 2, so that it ends within the minute: its default is ten tries.
    "mini-swe-agent": {
        STALL: Cell(6, None, 4, _LITELLM + "Timeout", 1, TOO_OFTEN, _TWO_TRIES),
        KILLED: Cell(1, 5, 0, _LITELLM + "InternalServerError", 1, TOO_OFTEN, _TWO_TRIES + "; five are connects"),
        REJECTED: Cell(1, None, 0, _LITELLM + "AuthenticationError", 1, NOTHING, "neither layer asks again"),
        QUOTA: Cell(6, None, 4, _LITELLM + "RateLimitError", 1, TOO_OFTEN, _TWO_TRIES),
        RATE: Cell(6, None, 4, _LITELLM + "RateLimitError", 1, TOO_OFTEN, "measured: the same as any other 429"),
        OUT_OF_MEMORY: Cell(6, None, 4, _LITELLM + "InternalServerError", 1, TOO_OFTEN, _TWO_TRIES),
        EMPTY_CHOICES: Cell(1, None, 0, "IndexError", 1, NOTHING, "the loop itself fails on the missing choice"),
        EMPTY_ANSWER: Cell(
            3, None, 0, None, 0, NOTHING, "it asks three times for a command; its status is RepeatedFormatError"
        ),
    },
    "pydantic-ai": {
        STALL: Cell(3, None, 2, _PYDANTIC + "ModelTimeoutError", 1, NOTHING, _SDK),
        KILLED: Cell(1, 2, 0, _PYDANTIC + "ModelConnectionError", 1, NOTHING, _SDK + "; the retries are connects"),
        REJECTED: Cell(1, None, 0, _PYDANTIC + "ModelAuthenticationError", 1, NOTHING, "no layer asks again"),
        QUOTA: Cell(3, None, 2, _PYDANTIC + "ModelQuotaExceededError", 1, NOTHING, "measured: " + _SDK),
        RATE: Cell(3, None, 2, _PYDANTIC + "ModelRateLimitError", 1, NOTHING, _SDK),
        OUT_OF_MEMORY: Cell(3, None, 2, _PYDANTIC + "ModelServerError", 1, NOTHING, _SDK),
        EMPTY_CHOICES: Cell(1, None, 0, "IndexError", 1, NOTHING, "the framework fails on the missing choice"),
        EMPTY_ANSWER: Cell(
            2, None, 0, _PYDANTIC + "UnexpectedModelBehavior", 1, NOTHING, "it asks once more for an output"
        ),
    },
    # Over the responses API, its default.
    "openai-agents": {
        STALL: Cell(3, None, 2, "openai.APITimeoutError", 1, NOTHING, _SDK),
        KILLED: Cell(1, 2, 0, "openai.APIConnectionError", 1, NOTHING, _SDK + "; the retries are connects"),
        REJECTED: Cell(1, None, 0, "openai.AuthenticationError", 1, NOTHING, "no layer asks again"),
        QUOTA: Cell(3, None, 2, "openai.RateLimitError", 1, NOTHING, _SDK),
        RATE: Cell(3, None, 2, "openai.RateLimitError", 1, NOTHING, _SDK),
        OUT_OF_MEMORY: Cell(3, None, 2, "openai.InternalServerError", 1, NOTHING, _SDK),
        EMPTY_CHOICES: Cell(
            1, None, 0, None, 0, PASSED_FOR_AN_ANSWER, "an empty output list is taken for a final answer"
        ),
        EMPTY_ANSWER: Cell(
            1, None, 0, None, 0, PASSED_FOR_AN_ANSWER, "an empty text is taken for the final answer"
        ),
    },
}  # fmt: skip
"""By agent, then by simulation."""
