from typing import Any

import pytest

from pytest_regcase.config import LimitsConfig, RegcaseConfig
from pytest_regcase.lint.loosened_config import LOOSER_WHEN_HIGHER, config_loosenings, config_problems

STRICT: dict[str, Any] = {
    "max_failure_rate": "0.05",
    "risk": "0.01",
    "plan": "zero",
    "rule": "fixed",
    "comparison": "fisher",
    "independence": "distinct",
    "min_sessions": 3,
    "attempts_spend": True,
    "flake_budget": "0.001",
    "max_quarantined": 1,
    "confirm": 4,
    "claim_days": 7,
}
LOOSER: dict[str, list[Any]] = {
    "max_failure_rate": ["0.051", ".5"],
    "risk": ["0.011"],
    "plan": ["allow-one", "c:1", "e-process"],
    "rule": ["bounded"],
    "comparison": ["boschloo", "bayes"],
    "independence": ["fresh", "off"],
    "min_sessions": [2],
    "attempts_spend": [False],
    "flake_budget": ["0.01"],
    "max_quarantined": [2],
    "confirm": [3],
    "claim_days": [8],
}
LIMITS: dict[str, Any] = {
    "max_failure_rate": "0.2",
    "risk": "0.05",
    "max_retries": 5,
    "stop_within_seconds": 120.0,
}


def amended(what: str) -> dict[str, Any]:
    return {"what": what, "why": "agreed", "who": "ada", "at": "2026-05-02T09:00:00Z"}


def config(**changes: Any) -> RegcaseConfig:
    return RegcaseConfig.model_validate({**STRICT, **changes}, strict=False)


def test_every_rule_that_decides_what_passes_has_a_direction() -> None:
    assert set(STRICT) == set(LOOSER) == set(LOOSER_WHEN_HIGHER)
    undirected = set(RegcaseConfig.model_fields) - set(LOOSER_WHEN_HIGHER)
    assert undirected == {
        "cases",
        "fixtures",
        "ledger",
        "quarantine",
        "cost_per_attempt",
        "keep_attempts_days",
        "limits",
        "supplier",
        "upstream",
        "amendments",
        "agents",
    }


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in LOOSER.items() for value in values])
def test_looser_one_way_and_not_the_other(key: str, value: Any) -> None:
    looser = config(**{key: value})
    (found,) = config_loosenings(config(), looser)
    assert (found.change.key, found.is_floor) == (f"tool.regcase.{key}", False)
    assert list(config_loosenings(looser, config())) == []
    assert [each.code for each in config_problems(config(), looser)] == ["rule-loosened"]
    right = amended(found.change.text)
    assert list(config_problems(config(), config(**{key: value, "amendments": [right]}))) == []
    wrong = amended(f"tool.regcase.{key} 1 -> 77")
    assert len(list(config_problems(config(), config(**{key: value, "amendments": [wrong]})))) == 1
    before = config(amendments=[right])
    assert len(list(config_problems(before, config(**{key: value, "amendments": [right]})))) == 1


def test_plans_are_ordered_by_the_failures_that_they_survive() -> None:
    def is_looser(before: str, now: str) -> bool:
        return bool(list(config_loosenings(config(plan=before), config(plan=now))))

    assert is_looser("allow-one", "c:2")
    assert is_looser("c:9", "c:10")
    assert not is_looser("c:10", "c:9")
    assert not is_looser("c:1", "allow-one")
    assert not is_looser("zero", "c:0")


@pytest.mark.parametrize("key", LimitsConfig.model_fields)
def test_a_floor_is_neither_raised_nor_removed(key: str) -> None:
    for more in ({key: "0.9" if isinstance(LIMITS[key], str) else 999}, {key: None}):
        now = config(limits={**LIMITS, **more})
        (found,) = config_loosenings(config(limits=LIMITS), now)
        named = now.model_copy(update={"amendments": config(amendments=[amended(found.change.text)]).amendments})
        for each in (now, named):
            assert [one.code for one in config_problems(config(limits=LIMITS), each)] == ["limit-loosened"]
        assert list(config_problems(now, config(limits=LIMITS))) == []


def test_an_amendment_of_the_rules_stays() -> None:
    before = config(amendments=[amended("tool.regcase.risk"), amended("tool.regcase.plan")])
    now = config(amendments=[amended("tool.regcase.plan")])
    assert [each.code for each in config_problems(before, now)] == ["record-removed"]
    assert list(config_problems(now, before)) == []
