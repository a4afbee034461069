"""Which changes of `[tool.regcase]` loosen the rules of all cases.

Pure: two configurations in, findings out. Knows which direction of each key is the looser one; reads no file.
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pytest_regcase.case_files.guarded import ABSENT, Change, is_amended
from pytest_regcase.config import LimitsConfig, RegcaseConfig
from pytest_regcase.lint.codes import Found
from pytest_regcase.records.canonical import canonical_json

_ALL: Final = 10**9


def _number(value: Any) -> Decimal:
    return Decimal(str(value))


def _failures_survived(plan: Any) -> Decimal:
    """Return how many failed runs a claim survives under a plan; the e-process has no end to them."""
    found = re.fullmatch(r"c:(\d+)", plan)
    return Decimal(found[1] if found else {"zero": 0, "allow-one": 1}.get(plan, _ALL))


def _ranked(*strict_first: Any) -> Callable[[Any], Decimal]:
    return lambda value: Decimal(strict_first.index(value))


LOOSER_WHEN_HIGHER: Final = MappingProxyType[str, Callable[[Any], Decimal]](
    {
        "max_failure_rate": _number,
        "risk": _number,
        "plan": _failures_survived,
        "rule": _ranked("fixed", "bounded"),
        "comparison": _ranked("fisher", "boschloo", "bayes"),
        "independence": _ranked("distinct", "fresh", "off"),
        "min_sessions": lambda value: -_number(value),
        "attempts_spend": _ranked(True, False),
        "flake_budget": _number,
        "max_quarantined": _number,
        "confirm": lambda value: -_number(value),
        "claim_days": _number,
    }
)
"""The keys that decide what passes, each with a number that is higher where more passes.

More confirm runs find more failures that come and go. The exact tests of `comparison` reject less often than the
others, Fisher's least often of all.
"""


class Configured(NamedTuple):
    """One key of `[tool.regcase]` that is looser than before."""

    change: Change
    is_floor: bool
    """It stands in `[tool.regcase.limits]`: no amendment lifts a floor."""


def config_problems(before: RegcaseConfig, now: RegcaseConfig) -> Iterator[Found]:
    """Yield each rule that is looser than before and that no new ``[[tool.regcase.amendments]]`` names."""
    since = [each for each in now.amendments if each not in before.amendments]
    for change, is_floor in config_loosenings(before, now):
        key = tuple(change.key.split("."))
        if is_floor:
            yield Found(
                "limit-loosened",
                key,
                f"{change.key} was {change.old} and is {change.new}; what stands in [tool.regcase.limits] is a"
                " floor, and no amendment lifts it. Take it back",
            )
        elif not is_amended(change, since, old_seal=None):
            yield Found(
                "rule-loosened",
                key,
                f"{change.key} was {change.old} and is {change.new}, for every case without a rule of its own."
                " Take it back, or say why in [[tool.regcase.amendments]] with what ="
                f" '{change.text}', why, who and at",
            )
    for index, each in enumerate(before.amendments):
        if each not in now.amendments:
            yield Found(
                "record-removed",
                ("tool", "regcase", "amendments"),
                f"[[tool.regcase.amendments]] {index + 1} is gone or says something else; take the edit back: such"
                " records are only ever added",
            )


def config_loosenings(before: RegcaseConfig, now: RegcaseConfig) -> Iterator[Configured]:
    """Yield every key that lets more pass than before, amended or not."""
    for key, looseness in LOOSER_WHEN_HIGHER.items():
        old, new = getattr(before, key), getattr(now, key)
        if looseness(new) > looseness(old):
            yield Configured(Change(f"tool.regcase.{key}", _text(old), _text(new)), is_floor=False)
    for key in LimitsConfig.model_fields:
        old, new = getattr(before.limits, key), getattr(now.limits, key)
        if old is not None and (new is None or _number(new) > _number(old)):
            yield Configured(Change(f"tool.regcase.limits.{key}", _text(old), _text(new)), is_floor=True)


def _text(value: Any) -> str:
    return ABSENT if value is None else canonical_json(value).decode()
