"""Annotations: the right line of the right file, escaped, most important first, never more than GitHub shows."""

import re

import pytest

from pytest_regcase.records.decision import CaseResult, GateDecision, Reason, ScenarioResult
from pytest_regcase.reporters.github import CaseText, annotations

CASE = """\
schema = 1
id = "trial-37"

[observation]
symptom = "s"

[[hypotheses]]
id = "a"
simulations = ["stall-v1"]
[[hypotheses]]
id = "b"
simulations = [
  "stall-v1-long", "killed-v1",
]

[expected_recovery]
required = ["separates_causes"]

[quarantine]
owner = "o"
expires = 2026-01-01

[[fix]]
number = 1
[[fix]]
number = 2
[[reopened]]
by = "x"
"""
FILES = {"trial-37": CaseText("cases/trial-37/case.toml", CASE)}
COMMAND = re.compile(r"::(error|warning) (.*?)::(.*)")


def a_decision(*reasons: Reason) -> GateDecision:
    scenarios = tuple(
        ScenarioResult(name=each, planned=1, run=1)
        for each in ("control", "stall-v1", "stall-v1-long", "killed-v1")
    )
    case = CaseResult(case_id="trial-37", state="open", scenarios=scenarios)
    return GateDecision(decision="fail", profile="pull-request", reasons=reasons, cases=(case,))


def read(line: str) -> tuple[str, dict[str, str], str]:
    """Read a command as the runner does."""
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    level, properties, text = found.groups()
    pairs = dict(each.split("=", 1) for each in properties.split(","))
    for code, char in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        pairs = {key: value.replace(code, char) for key, value in pairs.items()}
        text = text if code in ("%2C", "%3A") else text.replace(code, char)
    return level, pairs, text


@pytest.mark.parametrize(
    ("code", "text", "line"),
    [
        ("check-broken", "stall-v1: max_retries broken in 3 of 3 attempts", 9),
        ("check-broken", "stall-v1-long: max_retries broken in 3 of 3 attempts", 12),
        ("not-run", "2 of 4 planned not run: killed-v1, stall-v1", 12),
        ("control-failed", "stall-v1: proved nothing, the control of this session did not finish", 9),
        ("check-inconclusive", "control: proved nothing, it was cut short", 4),
        ("quarantine-expired", "its quarantine expired on 2026-01-01; owner o: r", 21),
        ("recurred", "the symptom came back in live run 2", 25),
        ("case-regressed", "regressed: it was reopened", 27),
        ("causes-not-separated", "separates_causes: killed-v1 and stall-v1 look alike", 17),
        ("something-new", "never heard of", 4),
    ],
)
def test_it_stands_at_the_line_that_the_reason_is_about(code: str, text: str, line: int) -> None:
    (command,) = annotations(a_decision(Reason(code=code, case_id="trial-37", text=text)), FILES)
    place = {"file": "cases/trial-37/case.toml", "line": str(line), "title": f"regcase {code}: trial-37"}
    assert read(command) == ("error", place, text)


@pytest.mark.parametrize("text", ["not toml [", "", "[observation"])
def test_a_file_that_changed_meanwhile_is_still_the_place(text: str) -> None:
    reason = Reason(code="check-broken", case_id="trial-37", text="stall-v1: x")
    (command,) = annotations(a_decision(reason), {"trial-37": CaseText("c.toml", text)})
    assert read(command)[1]["line"] == "1"


def test_nothing_in_a_text_ends_the_command_or_begins_another() -> None:
    text = "50 % of: a, b\r\n::error::x\n::set-output name=a::b"
    reason = Reason(code="x:y,z", case_id="trial-37", text=text)
    (command,) = annotations(a_decision(reason), {"trial-37": CaseText("a,b:c%/case.toml", CASE)})
    assert "\n" not in command
    assert "\r" not in command
    _, properties, says = read(command)
    assert (properties["file"], properties["title"]) == ("a,b:c%/case.toml", "regcase x:y,z: trial-37")
    assert says == text


def test_each_problem_of_a_file_that_does_not_load_is_at_its_own_line() -> None:
    text = "cases/bad/case.toml:15: unknown key `x`: no\ncases/bad/case.toml:2: id is missing"
    reason = Reason(code="invalid-case", case_id="cases/bad/case.toml", text=text)
    found = annotations(a_decision(reason), {}, in_repository=lambda path: f"sub/{path}")
    assert [(read(each)[1]["file"], read(each)[1]["line"], read(each)[2]) for each in found] == [
        ("sub/cases/bad/case.toml", "15", "unknown key `x`: no"),
        ("sub/cases/bad/case.toml", "2", "id is missing"),
    ]


def test_what_has_no_place_names_its_case_in_the_text() -> None:
    reasons = [
        Reason(code="nothing-run", text="no check was run"),
        Reason(code="check-broken", case_id="trial-37", text="stall-v1: broken"),
    ]
    found = annotations(a_decision(*reasons), FILES, in_repository=lambda _: None)
    assert found == [
        "::error title=regcase nothing-run::no check was run",
        "::error title=regcase check-broken%3A trial-37::trial-37: stall-v1: broken",
    ]


def test_notes_warn_where_somebody_should_look_the_worst_first() -> None:
    notes = ["quarantined", "flaky", "verifying", "recurred", "drift-alarm"]
    reasons = [Reason(code=each, case_id="trial-37", text=each, red=False) for each in notes]
    found = [read(each) for each in annotations(a_decision(*reasons), FILES)]
    assert [(level, text) for level, _, text in found] == [
        ("warning", "recurred"),
        ("warning", "drift-alarm"),
        ("warning", "flaky"),
    ]


@pytest.mark.parametrize(("count", "shown"), [(10, 10), (11, 10), (300, 10)])
def test_no_more_than_github_shows_and_the_last_says_the_rest(count: int, shown: int) -> None:
    red = [Reason(code="check-broken", case_id=f"case-{n:03}", text=f"text {n}") for n in range(count)]
    flaky = [Reason(code="flaky", case_id="trial-37", text="control: x", red=False)] * count
    found = [read(each) for each in annotations(a_decision(*red, *flaky), FILES)]
    assert [level for level, _, _ in found] == ["error"] * shown + ["warning"] * shown
    last = found[shown - 1][2]
    if count == 10:
        assert last == "case-009: text 9"
    else:
        assert last.startswith(f"and {count - 9} more:\nregcase check-broken: case-009: case-009: text 9\n")
    assert len(last) <= 2000


def test_what_kept_the_run_from_being_counted_comes_first() -> None:
    reason = Reason(code="check-broken", case_id="trial-37", text="stall-v1: x")
    found = annotations(a_decision(reason), FILES, troubles=["Couldn't write the ledger: disk full.\nDo this."])
    assert found[0] == "::error title=regcase::Couldn't write the ledger: disk full.%0ADo this."
    assert len(found) == 2
    assert annotations(None, {}) == ["::error title=regcase::no decision could be made"]
