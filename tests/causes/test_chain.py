"""Whatever an error is, or does when it is looked at: no exception comes out, and reading it ends."""

from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

import pytest

from pytest_regcase.causes import classify_failure


class _Refuses(Mapping[str, object]):
    """A table that raises whatever it is asked."""

    def __getitem__(self, key: str) -> object:
        raise ValueError(key)

    def __iter__(self) -> Iterator[str]:
        raise ValueError

    def __len__(self) -> int:
        raise ValueError


class _NoName(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__name__", "__qualname__"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


class _NamelessError(Exception, metaclass=_NoName):
    pass


class _OddChainError(Exception):
    __cause__ = property(lambda _: 1 // 0)
    __context__ = property(lambda _: "no exception")


class _OddGroup(ExceptionGroup[Exception]):
    @property
    def exceptions(self) -> tuple[Exception, ...]:
        raise RuntimeError


class _NoClassError(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class _RateLimitError(Exception):
    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.__dict__.update(facts)


def _refusing_answer() -> Exception:
    return _RateLimitError("Rate limit reached", body=_Refuses(), response=_Refuses(), details=[_Refuses()])


def _doubling() -> list[Any]:
    found: list[Any] = []
    found.extend([found] * 50)
    return found


@pytest.mark.parametrize(
    "made",
    [
        lambda: _Refuses(),
        lambda: {"body": _Refuses()},
        lambda: dict.fromkeys(("type", "message", "status_code", "code", "error_type", "body", "chain")),
        lambda: {"type": ["x"], "message": 3, "status_code": True, "code": 10**5000, "chain": 7, "body": object()},
        lambda: {"type": _NamelessError},
        lambda: _NamelessError("x"),
        lambda: _OddChainError("x"),
        lambda: _OddGroup("x", [ValueError()]),
        lambda: _NoClassError("x"),
        lambda: {"body": _doubling(), "chain": _doubling()},
        lambda: {"message": "\\" * 20_000},
        lambda: {"message": "exceeded your current quota per day " * 600, "status_code": 400},
        lambda: {"message": "x" * 20_000_000, "body": b"\xff" * 20_000_000},
        lambda: None,
        list,
    ],
    ids=str.split(
        "table table-as-body all-none wrong-types nameless-class nameless chain group no-class doubling"
        " backslashes repeated huge none list"
    ),
)
def test_nothing_comes_out_of_an_odd_shape_and_it_ends(made: Callable[[], Any]) -> None:
    # Without a bound on what is looked at, some of these take for ever.
    assert classify_failure(made()).cause in ("unknown", "key_budget")


def test_an_answer_that_refuses_to_be_read_hides_nothing_else() -> None:
    assert classify_failure(_refusing_answer()).kind == "rate_limit"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"status_code": "429"}, "rate_limit"),
        ({"status_code": "429 Too Many Requests"}, "rate_limit"),
        ({"status_code": HTTPStatus.TOO_MANY_REQUESTS}, "rate_limit"),
        ({"status_code": 429.0}, "rate_limit"),
        ({"code": 429}, "rate_limit"),
        ({"code": "429"}, "rate_limit"),
        ({"code": "429-not-a-status"}, "unknown"),
        ({"message": b"Rate limit reached"}, "rate_limit"),
        ({"message": {"error": {"code": "invalid_api_key"}}}, "auth"),
        ({"message": ["Incorrect API key provided"]}, "auth"),
        ({"chain": {"message": "Incorrect API key provided"}}, "auth"),
        ({"chain": "Incorrect API key provided"}, "auth"),
        ({"chain": [None, 3, ValueError("Incorrect API key provided")]}, "auth"),
        ({"chain": [{"message": "x", "chain": [{"message": "Incorrect API key provided"}]}]}, "auth"),
        ({"type": TimeoutError}, "timeout"),
        ({"type": TimeoutError("x")}, "timeout"),
        ({"type": TimeoutError("x"), "message": None}, "timeout"),
    ],
)
def test_the_same_facts_in_other_shapes(error: dict[str, Any], kind: str) -> None:
    assert classify_failure(error).kind == kind
