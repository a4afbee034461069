"""What hooks of a project may change for its sessions: an agent's entry, and what is expected of an agent.

Knows what hooks returned, and nothing of how they are called. Expectations are tightened, never loosened: what a
hook asks for is part of the case as the session sees it, so its attempts are counted for that and nothing else.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import AgentConfig, agent_problems
from pytest_regcase.errors import UsageRefused
from pytest_regcase.lint.loosened import loosenings
from pytest_regcase.records.case import RerunRule
from pytest_regcase.records.expected_recovery import ExpectedRecovery

_ANY_RULE = RerunRule(max_failure_rate="0.5", risk="0.5")


def tightened(loaded: LoadedCase, asked: object) -> LoadedCase:
    """Return the case with what a hook asks for in addition: keys of ``[expected_recovery]``.

    Raises:
        UsageRefused: it is no mapping, has an unknown key or a value that cannot be, or loosens something.
    """
    who = f"pytest_regcase_expectations for {loaded.id}"
    if not isinstance(asked, Mapping):
        raise UsageRefused(
            f"Couldn't take what {who} returned: a {type(asked).__name__}.\n"
            "Return None, or a dict with keys of [expected_recovery]."
        )
    before = loaded.case.expected_recovery
    try:
        now = ExpectedRecovery.model_validate(_merged(before.model_dump(), asked))
    except ValidationError as error:
        raise UsageRefused(
            f"Couldn't take what {who} returned: {_first(error)}.\n"
            "See `regcase schema case` for what [expected_recovery] may hold."
        ) from error
    case = loaded.case.model_copy(update={"expected_recovery": now})
    for _, change in loosenings(loaded.case, case, configured=(_ANY_RULE, _ANY_RULE)):
        raise UsageRefused(
            f"Couldn't take what {who} returned: {change.key} is {change.old} and would be {change.new}, which"
            " asks for less.\nA hook may only tighten; to loosen something, change the case (`regcase amend`)."
        )
    return replace(loaded, case=case)


def hooked_agent(name: str, case_id: str, entry: object) -> AgentConfig:
    """Return the entry of an agent that a hook gave.

    Raises:
        UsageRefused: it is none that ``[tool.regcase.agents.NAME]`` could hold.
    """
    who = f"pytest_regcase_agent for {case_id} and the agent {name!r}"
    if isinstance(entry, AgentConfig):
        config = entry
    elif isinstance(entry, Mapping):
        try:
            config = AgentConfig.model_validate(dict(entry))
        except ValidationError as error:
            raise UsageRefused(
                f"Couldn't take what {who} returned: {_first(error)}.\n"
                "Return None, or a dict with the keys of [tool.regcase.agents.NAME]."
            ) from error
    else:
        raise UsageRefused(
            f"Couldn't take what {who} returned: a {type(entry).__name__}.\n"
            "Return None, or a dict with the keys of [tool.regcase.agents.NAME]."
        )
    for _, says in agent_problems(name, config):
        raise UsageRefused(f"Couldn't take what {who} returned: {says}.\nCorrect the hook.")
    return config


def _merged(before: dict[str, Any], asked: Mapping[Any, Any]) -> dict[str, Any]:
    merged = {**before, **asked}
    given = asked.get("when", {})
    if not isinstance(given, Mapping):
        return merged
    merged["when"] = {name: _capped(own, asked) for name, own in before["when"].items()}
    for name, more in given.items():
        own = merged["when"].get(name, {})
        merged["when"][name] = {**own, **more} if isinstance(more, Mapping) else more
    return merged


def _capped(own: Mapping[str, Any], asked: Mapping[Any, Any]) -> dict[str, Any]:
    """What a class asks for already, no looser than what is now asked for in every class."""
    numbers = {key: value for key, value in asked.items() if isinstance(value, int | float)}
    return {key: min(value, numbers.get(key, value)) for key, value in own.items() if value is not None}


def _first(error: ValidationError) -> str:
    """Return the first complaint in one line."""
    each = error.errors(include_url=False)[0]
    place = ".".join(map(str, each["loc"]))
    if each["type"] == "extra_forbidden":
        return f"unknown key {place}"
    return f"{place}: {each['msg']}" if place else str(each["msg"])
