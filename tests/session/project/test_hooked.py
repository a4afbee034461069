"""What hooks may return: more than the case asks for, and entries that the configuration could hold."""

from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import AgentConfig
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.expected_recovery import ExpectedRecovery, Tightening
from pytest_regcase.session.project.hooked import hooked_agent, tightened
from tests.rules.attempt_samples import a_case

OWN = ExpectedRecovery(
    required=("log_failure",), mark_failure=False, when={"auth": Tightening(max_retries=0, stop_within_seconds=20)}
)


def a_loaded_case(expected: ExpectedRecovery = OWN) -> LoadedCase:
    return LoadedCase(Path("case.toml"), Path(), a_case("trial-37", expected_recovery=expected))


@pytest.mark.parametrize(
    ("asked", "changes"),
    [
        ({}, {}),
        ({"max_retries": 1}, {"max_retries": 1}),
        ({"max_retries": 3}, {}),
        ({"mark_failure": True, "stop_within_seconds": 30.5}, {"mark_failure": True, "stop_within_seconds": 30.5}),
        (
            {"stop_within_seconds": 5.5},
            {"stop_within_seconds": 5.5, "when": {"auth": Tightening(max_retries=0, stop_within_seconds=5.5)}},
        ),
        ({"no_repeated_side_effect": True}, {"no_repeated_side_effect": True}),
        ({"required": ["log_failure", "max_retries"]}, {"required": ("log_failure", "max_retries")}),
        (
            {"when": {"deadline": {"max_retries": 2}, "auth": {"stop_within_seconds": 10}}},
            {
                "when": {
                    "auth": Tightening(max_retries=0, stop_within_seconds=10),
                    "deadline": Tightening(max_retries=2),
                }
            },
        ),
    ],
)
def test_what_asks_for_more_is_taken_over_and_the_rest_stays(asked: Any, changes: Any) -> None:
    found = tightened(a_loaded_case(), asked).case.expected_recovery
    assert found == OWN.model_copy(update=changes)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            {"max_retries": 9},
            r"max_retries is 3 and would be 9, which asks for less.\nA hook may only",
        ),
        ({"log_failure": False}, "log_failure is true and would be false, which asks for less"),
        ({"when": {"auth": {"max_retries": 2}}}, "when.auth.max_retries is 0 and would be 2, which asks for less"),
        ({"required": []}, "required"),
        ({"other_failures": "pass-over"}, "other_failures is .*stop.* and would be .*pass-over"),
        ({"max_retrys": 1}, "for trial-37 returned: unknown key max_retrys"),
        ({"max_retries": "one"}, "returned: max_retries: .*integer"),
        ({"when": {"auth": 1}}, "returned: when.auth"),
        ({"when": {"auth": {"max_retries": 9}}}, "is looser than|asks for less"),
        ([1], "returned: a list.\nReturn None, or a dict with keys of"),
    ],
)
def test_what_asks_for_less_or_is_nothing_of_the_kind_is_refused(asked: Any, says: str) -> None:
    with pytest.raises(UsageRefused, match=says):
        tightened(a_loaded_case(), asked)


def test_a_limit_in_a_class_that_had_none_is_no_loosening() -> None:
    case = a_loaded_case(ExpectedRecovery())
    found = tightened(case, {"when": {"budget": {"max_retries": 0}}}).case.expected_recovery
    assert found.when["auth"] == Tightening(max_retries=0)
    assert found.under("budget").max_retries == 0


def test_an_entry_is_read_as_the_configuration_reads_it() -> None:
    entry = {"command": ["mine", "--fast"], "revision_paths": ["src"], "closing_reply": {"text": "Bye."}}
    config = hooked_agent("default", "trial-37", entry)
    assert (config.command, config.revision_paths) == (("mine", "--fast"), ("src",))
    assert hooked_agent("default", "trial-37", config) is config


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"comand": ["x"]}, "for trial-37 and the agent 'default' returned: unknown key comand"),
        ({}, "returned: neither command nor python is there for the agent default"),
        (AgentConfig(), "returned: neither command nor python is there"),
        ({"command": ["x"], "cap_seconds": 1}, "returned: cap_seconds = 1, for the whole attempt, is below"),
        ("x", "returned: a str.\nReturn None, or a dict with the keys of"),
    ],
)
def test_an_entry_that_the_configuration_could_not_hold_is_refused(entry: Any, says: str) -> None:
    with pytest.raises(UsageRefused, match=says):
        hooked_agent("default", "trial-37", entry)
