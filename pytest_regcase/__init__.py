"""pytest-regcase: one failed agent trial becomes one regression case that stays honest.

The names in `__all__` are the public API; every other module is internal. They load when they are first used, so
that a pytest run which does not ask for us pays nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_regcase.agents.request import AgentRequest
    from pytest_regcase.errors import RegcaseError
    from pytest_regcase.records.attempt import AttemptRecord
    from pytest_regcase.records.case import RegressionCase
    from pytest_regcase.records.decision import GateDecision
    from pytest_regcase.records.simulation import Simulation
    from pytest_regcase.records.trial import Trial
    from pytest_regcase.rules.binomial import upper_bound
    from pytest_regcase.rules.rerun import clean_reruns
    from pytest_regcase.session.attempts.function_fixture import RegcaseFixture
    from pytest_regcase.supplier.in_process import Injection, inject

__all__ = [
    "AgentRequest",
    "AttemptRecord",
    "GateDecision",
    "Injection",
    "RegcaseError",
    "RegcaseFixture",
    "RegressionCase",
    "Simulation",
    "Trial",
    "clean_reruns",
    "inject",
    "upper_bound",
]

_HOMES = {
    "AgentRequest": "agents.request",
    "AttemptRecord": "records.attempt",
    "GateDecision": "records.decision",
    "Injection": "supplier.in_process",
    "RegcaseError": "errors",
    "RegcaseFixture": "session.attempts.function_fixture",
    "RegressionCase": "records.case",
    "Simulation": "records.simulation",
    "Trial": "records.trial",
    "clean_reruns": "rules.rerun",
    "inject": "supplier.in_process",
    "upper_bound": "rules.binomial",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
