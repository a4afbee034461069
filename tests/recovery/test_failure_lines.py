"""Which line says that something failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.recovery.failure_lines import QUOTE_CHARACTERS, failure_in, quote_of, says_failure
from tests.recovery.observed_samples import PARTIAL_DIFF

FAILURES = [
    "Traceback (most recent call last):",
    "TypeError: 'NoneType' object is not subscriptable",
    "openai.AuthenticationError: Error code: 401 - Incorrect API key provided",
    "Retrying <unknown> in 4 seconds as it raised Timeout: litellm.Timeout: APITimeoutError - Request timed out.",
    "httpx.ConnectError",
    "\x1b[31mlitellm.Timeout: Request timed out\x1b[0m",
    'HTTP Request: POST http://127.0.0.1/v1 "HTTP/1.1 401 Unauthorized"',
    "status_code: 503, model_name: test-model",
    "model call failed: no answer within 3 s",
    "the supplier did not answer",
    "the supplier sent an empty answer",
    "Empty response received from LLM. Check your provider account?",
    "the reply was empty, giving up",
    "Connection refused",
    "gave up after 3 tries",
    '{"level": "error", "msg": "call failed"}',
]
NO_FAILURES = [
    "",
    "done",
    "2 passed",
    "attempt_timeout: 3",
    "timeout = 3 retries = 2 fail_on_error: true",
    '{"timeout": 3.0, "max_retries": 2, "error": null}',
    "--attempt-timeout 3 --max-retries 2",
    "0 errors",
    "no failures, 2 passed",
    "errors: 0",
    "finished without errors",
    "HTTP/1.1 200 OK",
    "port 40307 on test-model",
    "class FaultTolerant: pass",
    "error: none",
]


@pytest.mark.parametrize("line", FAILURES)
def test_failures_are_seen(line: str) -> None:
    assert says_failure(line)


@pytest.mark.parametrize("line", NO_FAILURES)
def test_settings_and_counts_of_nothing_are_none(line: str) -> None:
    assert not says_failure(line)


def test_the_first_line_that_says_so_is_quoted() -> None:
    assert failure_in("starting\nerrors: 0\nmodel call failed: 401\nTimeoutError: x\n") == "model call failed: 401"
    assert failure_in("starting\ndone\n") is None


def test_of_a_traceback_the_exception_is_quoted() -> None:
    frames = 'Traceback (most recent call last):\n  File "loop.py", line 7\n    raise APIError(x)\n'
    assert (
        failure_in(f"{frames}KeyError: 'x'\n\nIn turn:\n\n{frames}openai.APIError: 401\nbye\n")
        == "openai.APIError: 401"
    )
    assert failure_in(frames) == "Traceback (most recent call last):"


def test_known_texts_are_no_log() -> None:
    tool_result = "E   AssertionError: assert mean([2, 4]) == 3\n1 failed, 1 passed\n"
    printed = f"Tool:\n{tool_result}\nsubmitting\n"
    assert failure_in(printed) is not None
    assert failure_in(printed, [tool_result]) is None
    assert failure_in(f"  > {tool_result}", [tool_result]) is None
    assert failure_in(f"{printed}HTTP 401\n", [tool_result]) == "HTTP 401"


def test_a_known_line_inside_a_longer_one_is_taken_out() -> None:
    answer = "All errors are fixed and no test failed."
    assert failure_in(f'{{"role": "assistant", "content": "{answer}"}}', [answer]) is None
    assert failure_in(f'{{"content": "{answer}", "why": "call failed"}}', [answer, "x"]) is not None


def test_line_ends_inside_json_count() -> None:
    patch = PARTIAL_DIFF.replace("a + b", "a + b or error")
    escaped = patch.replace("\n", "\\n")
    assert failure_in(f'{{"patch": "{escaped}"}}') is not None
    assert failure_in(f'{{"patch": "{escaped}"}}', [patch]) is None


def test_quotes_are_one_short_line() -> None:
    assert quote_of("a\n \x1b[1mb\x1b[0m\tc") == "a b c"
    assert len(quote_of("x" * 5000)) == QUOTE_CHARACTERS
    assert quote_of("x" * 5000).endswith("...")


@given(st.text(), st.lists(st.text(), max_size=3))
def test_reading_never_raises_and_known_text_alone_shows_nothing(text: str, known: list[str]) -> None:
    quote = failure_in(text, known)
    assert quote is None or len(quote) <= QUOTE_CHARACTERS
    assert failure_in(text, [text, *known]) is None


def test_of_chained_exceptions_the_last_is_quoted_whatever_it_is_called() -> None:
    text = """\
Traceback (most recent call last):
  File "agent.py", line 3, in ask
    raise ToolRetryError(message)
pydantic_ai.exceptions.ToolRetryError: Please return text or call a tool.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "agent.py", line 9, in run
    ask()
pydantic_ai.exceptions.UnexpectedModelBehavior: Exceeded maximum output retries (1)
"""
    wanted = "pydantic_ai.exceptions.UnexpectedModelBehavior: Exceeded maximum output retries (1)"
    assert failure_in(text) == wanted
    assert failure_in(f"{text}Summary: 1 of 1 samples had errors\n") == wanted


def test_a_traceback_without_its_exception_is_quoted_by_its_first_line() -> None:
    text = "Traceback (most recent call last):\n  File 'agent.py', line 9\n    ask()"
    assert failure_in(text) == "Traceback (most recent call last):"
