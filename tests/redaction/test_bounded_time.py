"""No text makes redaction slower than in proportion to its length.

Nothing here asserts a time: a pattern that backtracks takes hours over these texts, and is stopped by a budget of
processor time that a linear one does not come near to.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_regcase.redaction import redact

LENGTH = 30_000
BUDGET_SECONDS = 120
FRAGMENTS = [
    *"a1 \n\\\"'`=:/@-_.%?&;<>()[]{}$*+~,é",
    "\\n", "://", "a://", "https://a:", "token=", "token=abc1", "password: ", 'password="', "key=", "Key", "?sig=",
    "secret", "sk-", "sk-*", "eyJ", "eyJa.", "bearer ", "basic ", "authorization: ", "cookie: a=", "; a=",
    "mysql ", "mysql -p", "curl -u ", "login ", "login a password ", "docker login ", "redis-cli ",
    "-----BEGIN ", "-----BEGIN RSA PRIVATE KEY-----", "/home/", "/home/a/", "C:\\Users\\", "USER=",
    "REDACTED-", "a@b.", "a@b.co", '"name": "api_key", "value": "', "\\u00e9", "<password>", "--password ",
    "SG.", "00000000:", "x.y.z.", "sk-a" * 9,
]  # fmt: skip


class TooSlow(BaseException):
    """Hypothesis must not take it for an ordinary failure and shrink it for hours."""


@contextmanager
def processor_time(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4).map("".join))
@example('"\\')
@example("token=token=(")
@example("//")
@example("docker login ")
def test_a_fragment_repeated_for_long_is_redacted_in_bounded_time(unit: str) -> None:
    text = (unit * (LENGTH // len(unit)))[:LENGTH]
    with processor_time(BUDGET_SECONDS):
        redact(text)


@pytest.mark.parametrize(
    "unit", ['"\\', "://", "a@", "key=", "-----BEGIN PRIVATE KEY-----", "eyJ", "a.", "cookie: a=b; "]
)
def test_five_times_the_text_too(unit: str) -> None:
    with processor_time(BUDGET_SECONDS):
        redact(unit * (150_000 // len(unit)))


def test_a_listing_of_many_homes_does_not_multiply() -> None:
    text = "\n".join(f"/home/user{number}x/" for number in range(20_000))
    with processor_time(BUDGET_SECONDS):
        cleaned, counts = redact(text)
    assert counts == {"home_path": 20_000}
    assert "user19999x" not in cleaned
