"""What a citation names, and which may not stand side by side."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_regcase.errors import ClaimRefused, UnknownName, UsageRefused
from pytest_regcase.evidence.citing import (
    LINES_LIMIT,
    check_exclusive,
    check_hypothesis,
    check_not_there,
    next_id,
    parse_place,
)
from pytest_regcase.records.case import Evidence, Hypothesis, Observation, RegressionCase, Withdrawal

AT = datetime(2026, 4, 20, tzinfo=UTC)
GONE = Withdrawal(why="x", who="y", at=AT)


def evidence(number: int, **facts: Any) -> Evidence:
    values = {
        "id": f"ev-{number}",
        "hypothesis": "a",
        "stance": "supports",
        "file": "x.log",
        "lines": "1",
        "digest": "sha256:" + "0" * 64,
        "quote": "q",
        "why": "w",
        "who": "m",
        "at": AT,
    }
    return Evidence(**{**values, **facts})


def case(*found: Evidence, coincide: tuple[str, ...] = ()) -> RegressionCase:
    hypotheses = (Hypothesis(id="a", may_coincide_with=coincide), Hypothesis(id="b"))
    observation = Observation(symptom="x", source_event="y")
    return RegressionCase(observation=observation, hypotheses=hypotheses, evidence=found)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("kern.log:12", ("kern.log", 12, 12)),
        ("a b/kern.log:12-15", ("a b/kern.log", 12, 15)),
        ("C:x:7-7", ("C:x", 7, 7)),
        (f"x:1-{LINES_LIMIT}", ("x", 1, LINES_LIMIT)),
    ],
)
def test_a_place_is_read(text: str, place: tuple[str, int, int]) -> None:
    found = parse_place(text)
    assert found == place
    assert parse_place(f"{found.file}:{found.lines}") == place


@pytest.mark.parametrize(
    "text", ["kern.log", "kern.log:", ":12", "x:0", "x:3-2", "x:a", "x:1-", f"x:1-{LINES_LIMIT + 1}"]
)
def test_what_names_no_lines_is_refused(text: str) -> None:
    with pytest.raises(UsageRefused, match="Couldn't cite"):
        parse_place(text)


def test_only_the_hypotheses_of_the_case_are_cited_for() -> None:
    check_hypothesis(case(), "b")
    with pytest.raises(UnknownName, match=r"It has: a, b\."):
        check_hypothesis(case(), "c")


@pytest.mark.parametrize(
    ("found", "coincide", "refused"),
    [
        (evidence(1), (), True),
        (evidence(1), ("b",), False),
        (evidence(1, stance="refutes"), (), False),
        (evidence(1, withdrawn=GONE), (), False),
        (evidence(1, hypothesis="b"), (), False),
    ],
)
def test_two_that_exclude_each_other_are_not_supported_at_once(
    found: Evidence, coincide: tuple[str, ...], refused: bool
) -> None:
    given = case(found, coincide=coincide)
    if refused:
        with pytest.raises(ClaimRefused, match="ev-1 supports a"):
            check_exclusive(given, "b")
    else:
        check_exclusive(given, "b")


def test_that_both_may_be_true_may_be_said_at_either() -> None:
    check_exclusive(case(evidence(1, hypothesis="b"), coincide=("b",)), "a")


def test_ids_are_never_given_twice() -> None:
    assert next_id(case()) == "ev-1"
    assert next_id(case(evidence(1, withdrawn=GONE))) == "ev-2"
    assert next_id(case(evidence(2))) == "ev-3"


def test_what_is_cited_already_is_refused_unless_it_was_withdrawn() -> None:
    with pytest.raises(UsageRefused, match="already, as ev-1"):
        check_not_there(case(evidence(1)), evidence(2))
    check_not_there(case(evidence(1)), evidence(2, lines="2"))
    check_not_there(case(evidence(1)), evidence(2, stance="refutes"))
    check_not_there(case(evidence(1, withdrawn=GONE)), evidence(2))
