"""What a person reads at the end: complete, at most 80 columns, readable without colour, the decision last."""

import re
from typing import Any

import pytest

from pytest_regcase.records.attempt import AttemptRecord, WireSummary
from pytest_regcase.records.decision import CaseResult, GateDecision
from pytest_regcase.records.words import AttemptVerdict, Profile
from pytest_regcase.reporters.terminal import summary_lines
from pytest_regcase.rules.gate import decide
from pytest_regcase.rules.gate_inputs import PlannedCheck
from tests.reporters.decision_samples import BASELINE, broken_attempts, everything
from tests.rules.attempt_samples import (
    SIMULATION,
    a_case,
    a_fix,
    an_attempt,
    case_inputs,
    control,
    first_tries,
    gate_inputs,
    live,
    live_run,
    simulation,
    tries,
)


def flat(lines: list[str]) -> str:
    """The text without its line breaks, as a reader takes it in."""
    return " ".join(" ".join(lines).split())


def section(lines: list[str], title: str) -> list[str]:
    start = next(index for index, line in enumerate(lines) if line.startswith(title))
    return lines[start : lines.index("", start) if "" in lines[start:] else len(lines)]


def of(
    *cases: Any, attempts: tuple[AttemptRecord, ...] = (), profile: Profile = "pull-request", **changes: Any
) -> list[str]:
    return summary_lines(decide(gate_inputs(*cases, profile=profile, **changes)), attempts)


def test_a_good_session_is_short() -> None:
    assert of(case_inputs()) == [
        "trial-37 (open)",
        "  control                passed",
        "  deadline-no-answer-v1  passed        checked 7 of 7",
        "",
        "PASS (profile pull-request, confirm:2): 1 case, 2 checks: 2 passed",
    ]


@pytest.mark.parametrize("profile", ["pull-request", "nightly", "release"])
@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(profile: Profile, width: int) -> None:
    decision, attempts = everything(profile)
    lines = summary_lines(decision, attempts, width=width)
    assert max(len(line) for line in lines) <= width
    assert not any(line != line.rstrip() for line in lines)


def test_the_decision_is_the_last_thing_said_and_its_reasons_come_before() -> None:
    decision, attempts = everything("nightly")
    lines = summary_lines(decision, attempts)
    last = next(index for index, line in enumerate(lines) if line.startswith("FAIL (profile nightly"))
    assert last >= len(lines) - 3  # it may wrap
    assert lines[last - 1].startswith("  note      noisy:")
    assert "1 quarantined beside them" in flat(lines[last:])


def test_what_broke_is_told_with_its_facts_and_where_to_look() -> None:
    decision, attempts = everything()
    text = flat(section(summary_lines(decision, attempts), "What broke"))
    assert "sweep-0412-trial-37, deadline-no-answer-v1: 3 attempts (3 not-recovered)" in text
    assert "max_retries (too_many): 7 requests followed the first faulted one" in text
    assert 'mark_failure (unmarked): the artefact\'s status is "Submitted"' in text
    assert "see: .regcase/sessions/20260520t091201-9f2c11ab/attempts/" in text


def test_what_cannot_be_seen_is_said_in_the_table() -> None:
    decision, attempts = everything()
    assert "checked 5 of 7, cannot see: no_partial_submission, keep_partial_patch" in flat(
        summary_lines(decision, attempts)
    )


def test_without_attempts_what_broke_is_said_in_words() -> None:
    decision, _ = everything()
    assert "max_retries (too_many): it kept asking beyond its retry budget" in flat(summary_lines(decision))
    assert "the agent left the recorded replies" in flat(section(summary_lines(decision), "What proved nothing"))


def test_every_kind_of_result_has_a_word_of_its_own() -> None:
    decision, attempts = everything()
    text = "\n".join(summary_lines(decision, attempts))
    for word in ("passed", "BROKEN", "FLAKY", "INCONCLUSIVE", "NOT RUN", "counted", "INVALID"):
        assert re.search(rf"^  .*\b{word}\b", text, re.MULTILINE), word


def test_a_flaky_check_keeps_its_first_failure() -> None:
    decision, attempts = everything()
    text = flat(section(summary_lines(decision, attempts), "Flaky"))
    assert "a-case, oom-killed-v1: 3 attempts (1 not-recovered, 2 recovered)" in text
    assert "max_retries did not hold" in text


def test_what_proved_nothing_says_why() -> None:
    decision, attempts = everything()
    text = flat(section(summary_lines(decision, attempts), "What proved nothing"))
    assert "request 2 offers no tool named bash" in text


def test_what_differs_from_the_recording_is_one_line_a_case() -> None:
    results = "2 tool results differ from the recording"
    wires = (
        WireSummary(requests_a_step=(1, 1), differences=("1 tool result differs from the recording",)),
        WireSummary(requests_a_step=(1, 1, 1), differences=("the agent no longer offers submit", results)),
        WireSummary(requests_a_step=(1, 1, 1, 1)),
    )
    made = tuple(
        each.model_copy(update={"wire": wire})
        for each, wire in zip(tries("recovered", "recovered", "recovered"), wires, strict=True)
    )
    lines = of(case_inputs(), attempts=made)
    assert flat(section(lines, "Today's agent beside the recording")) == (
        f"Today's agent beside the recording trial-37: the agent no longer offers submit; {results}"
    )
    assert "Today's agent" not in flat(of(case_inputs(), attempts=(made[2],)))


def test_a_simulation_beside_a_failed_control_shows_that_reason() -> None:
    made = tries("recovered", folder="somewhere")
    check = PlannedCheck(scenario=SIMULATION, kind="simulation", tries=made)
    lines = of(case_inputs(checks=(control("did-not-finish"), check)), attempts=made)
    text = flat(section(lines, "What proved nothing"))
    assert "the control of this session did not finish" in text
    assert "see: somewhere" in text


def test_a_count_says_how_its_number_was_got() -> None:
    decision, attempts = everything()
    text = flat(section(summary_lines(decision, attempts), "Claimed fixes"))
    assert "claimed, fix 2: 11 of 29 clean live runs" in text
    assert "29 rule out a 10 % rate at 5 % risk: 0.90^29 = 0.0471" in text
    assert "upper bound so far, at this look only, what proved nothing taken as failed: 0.3387" in text
    assert "fresh draws 11, distinct transcripts 11, sessions 2" in text
    assert "they proved nothing: run 10" in text
    assert "29 clean runs would still happen 4.7 % of the time" in text
    assert "risk that one of 2 fixes passes by luck: 9.2 %" in text
    assert "came-back, fix 1: 1 of 29 clean live runs, stopped by run 2" in text


def test_a_bounded_claim_says_so_and_a_closed_case_says_nothing() -> None:
    clean: list[AttemptVerdict] = ["clean"] * 29
    bounded = of(case_inputs(a_case(fix=(a_fix(),), baseline=BASELINE), live=live(*clean)))
    assert "BOUNDED: failure rate below 10 %, upper bound 0.0982" in flat(bounded)
    assert section(bounded, "Next")[1:] == ["  - trial-37: the rerun rule is met:", "      regcase close trial-37"]
    closed = a_case(fix=(a_fix(),), closed=[{"at": a_fix().at, "by": "x", "revision": "r", "numbers": {}}])
    assert "Claimed fixes" not in of(case_inputs(closed, live=live(*clean)))
    retired = a_case(fix=(a_fix(),), retired=[{"at": a_fix().at, "by": "x", "why": "gone"}])
    assert "Claimed fixes" not in of(case_inputs(), case_inputs(retired, checks=(), live=live(*clean)))


def claims_of(case: Any, rows: Any = (), **settings: Any) -> str:
    """The section on claims, of one case under the settings given."""
    return flat(section(of(case_inputs(case, live=rows, claims=settings)), "Claimed fixes"))


def test_both_claims_are_named_and_how_the_comparison_came_out() -> None:
    clean: list[AttemptVerdict] = ["clean"] * 29
    case = a_case(fix=(a_fix(),), baseline={"failures": 1, "trials": 1, "kind": "all-attempts"})
    text = claims_of(case, live(*clean))
    assert "FIXED: failure rate below 10 %, upper bound 0.0982, and it fails less than before" in text
    assert "beside the baseline: fails less than before (1 of 1, " in text
    assert "note: all clean runs come from 1 session" in text
    fewer = claims_of(case, live(*clean[:19]))
    assert "IMPROVED: it fails less than before; the rate is not bounded yet" in fewer
    assert "upper bound so far, at this look only: 0.1459" in fewer
    never = a_case(fix=(a_fix(),), baseline={"failures": 0, "trials": 9, "kind": "fresh"})
    assert "NOT REPRODUCED: nothing failed in the baseline; the rate is not bounded yet" in claims_of(never)


def test_what_the_rule_asks_for_beside_clean_runs_is_said() -> None:
    clean: list[AttemptVerdict] = ["clean"] * 29
    case = a_case(fix=(a_fix(),), baseline={"failures": 2, "trials": 20, "kind": "all-attempts"})
    text = claims_of(case, live(*clean), rule="fixed")
    assert "29 of 68 clean live runs" in text
    assert "0.90^29 = 0.0471; 68 clean runs with the comparison with the baseline" in text
    assert "not there yet: fewer failures than in the baseline: p = 0.16" in text


def test_a_failure_that_the_plan_allows_is_said() -> None:
    text = claims_of(a_case(fix=(a_fix(),)), live("clean", "recurred", "clean"), plan="allow-one")
    assert "2 of 53 clean live runs, 1 failed run that plan allow-one allows" in text
    assert "plan allow-one: 31 clean runs or 54 with 1 failed rule out a 10 % rate" in text
    assert "upper bound so far, at this look only: 0.8647" in text


def test_the_risk_over_all_fixes_is_always_said() -> None:
    assert "risk that this fix passes by luck: 4.72 %" in claims_of(a_case(fix=(a_fix(),)))
    assert "risk that one of 3 fixes passes by luck: 13.48 %" in claims_of(a_case(fix=(a_fix(3),)))


def test_an_unasked_independence_is_said_in_capitals() -> None:
    text = claims_of(a_case(fix=(a_fix(),)), live("clean", fresh=False), independence="off")
    assert "note: UNVERIFIED: whether the clean runs are independent draws was not asked" in text


@pytest.mark.parametrize(
    ("policy", "title"),
    [
        ("confirm:1", "Flaky: failed once, then passed the confirm run"),
        ("confirm:2", "Flaky: failed once, then passed both confirm runs"),
        ("confirm:3", "Flaky: failed once, then passed all 3 confirm runs"),
        ("any-pass:1", "Flaky: failed, and not red under any-pass:1"),
    ],
)
def test_what_flaky_means_depends_on_the_policy(policy: str, title: str) -> None:
    checks = (control("finished"), simulation("not-recovered", "recovered", "recovered", "recovered"))
    assert title in of(case_inputs(checks=checks), policy=policy)


def test_a_retired_case_is_listed() -> None:
    retired = a_case("gone", retired=[{"at": a_fix().at, "by": "team-a", "why": "the task is gone"}])
    lines = of(case_inputs(), case_inputs(retired, checks=()))
    assert lines[lines.index("gone (retired)") + 1] == "  not run any more"
    assert "note      gone: retired on 2026-05-10 by team-a: the task is gone" in flat(lines).replace(
        "note gone", "note      gone"
    )


def test_another_ledger_asks_for_no_further_runs() -> None:
    text = flat(section(of(case_inputs(a_case(fix=(a_fix(),)), fix_is_of_another_ledger=True)), "Next"))
    assert "run where the ledger is that the fix was claimed on" in text
    assert "regcase fix trial-37" in text
    assert "more live runs to make" not in text


def test_what_to_do_about_flakiness() -> None:
    checks = (control("finished"), simulation("not-recovered", "recovered", "recovered"))
    history = first_tries("pf" + 9 * "p" + "f" + 8 * "p" + "ff")
    noisy = case_inputs(checks=checks, first_attempts={SIMULATION: history})
    lines = of(noisy, case_inputs(a_case("other")), profile="nightly")
    text = flat(section(lines, "Next"))
    assert "repair the flaky check, or let its owner set the case aside with [quarantine]" in text
    assert "see what changed since the check began to fail more often" in text
    reasons = flat(section(lines, "Reasons"))
    assert "FAIL trial-37: deadline-no-answer-v1: FLAKY, and over its budget" in reasons


def test_many_missing_runs_are_counted() -> None:
    rows = live("clean", first=9)
    text = flat(of(case_inputs(a_case(fix=(a_fix(),)), live=rows)))
    assert "run 1, 2, 3, 4, 5 and 3 more" in text


def test_a_claim_that_is_settled_asks_for_its_close() -> None:
    clean: list[AttemptVerdict] = ["clean"] * 29
    met = of(case_inputs(a_case(fix=(a_fix(),)), live=live(*clean)))
    assert "trial-37: the rerun rule is met: regcase close trial-37" in flat(section(met, "Next"))
    short = of(case_inputs(a_case(fix=(a_fix(),)), live=live(*clean[1:])))
    assert "regcase close" not in flat(short)


def test_an_empty_count_has_no_bound() -> None:
    text = flat(of(case_inputs(a_case(fix=(a_fix(),)))))
    assert "0 of 29 clean live runs" in text
    assert "upper bound" not in text
    assert "29 more live runs to make" in text
    assert "--regcase-live=29" in text


def test_quarantine_is_told_with_owner_and_expiry() -> None:
    decision, attempts = everything()
    lines = summary_lines(decision, attempts)
    assert "noisy (open, quarantined: does not gate)" in lines
    text = flat(section(lines, "Quarantined"))
    assert "until 2026-05-30, owner team-a: fails on Mondays" in text


def test_the_next_step_is_a_command_that_can_be_copied() -> None:
    decision, attempts = everything("nightly")
    lines = section(summary_lines(decision, attempts), "Next")
    assert "      regcase fix came-back" in lines
    assert "      pytest --regcase --regcase-profile=nightly --regcase-live=18" in lines


def test_two_cases_with_one_next_step_are_not_named() -> None:
    cases = [case_inputs(a_case(name, fix=(a_fix(),)), live=live("recurred")) for name in ("one", "two")]
    assert "      regcase fix CASE" in of(*cases, profile="nightly")


def test_an_invalid_file_names_its_place_once() -> None:
    problem = "cases/bad/case.toml:3: unknown key\ncases/bad/case.toml:9: not a number"
    lines = of(case_inputs(), invalid={"cases/bad/case.toml": problem})
    assert "cases/bad/case.toml" in lines
    assert "  FAIL      cases/bad/case.toml:3: unknown key" in lines
    assert "            cases/bad/case.toml:9: not a number" in lines


def test_nothing_planned_is_said() -> None:
    lines = of(case_inputs(checks=()))
    assert "  nothing was planned" in lines
    assert lines[-1] == "UNPROVEN (profile pull-request, confirm:2): 1 case, 0 checks: none"
    assert of()[-1] == "UNPROVEN (profile pull-request, confirm:2): 0 cases, 0 checks: none"


def test_live_runs_that_were_planned_and_not_made() -> None:
    checks = (control("finished"), simulation("recovered"), live_run(1))
    lines = of(case_inputs(a_case(fix=(a_fix(),)), checks=checks))
    assert "  live                   NOT RUN       0 of 29 clean" in lines


def test_a_long_name_gets_a_line_of_its_own() -> None:
    name = "a-simulation-of-somebody-elses-with-a-very-long-name-v1"
    lines = of(case_inputs(checks=(control("finished"), simulation("recovered", name=name))))
    at = lines.index(f"  {name}")
    assert lines[at + 1].strip() == "passed        checked 7 of 7"


def test_what_an_agent_printed_cannot_steer_the_terminal() -> None:
    made = tries("inconclusive", "inconclusive", says="\x1b[2J\x1b[31mcleared\nPASS (profile nightly)\u202e")
    check = PlannedCheck(scenario=SIMULATION, kind="simulation", tries=made)
    lines = of(case_inputs(checks=(control("finished"), check)), attempts=made)
    assert not any("\x1b" in line or "\u202e" in line or line.startswith("PASS") for line in lines)


def test_colour_adds_nothing_but_colour() -> None:
    decision, attempts = everything()
    plain = summary_lines(decision, attempts)
    coloured = summary_lines(decision, attempts, colour=True)
    assert coloured != plain
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain


def test_the_order_in_which_attempts_ended_changes_nothing() -> None:
    decision, attempts = everything()
    assert summary_lines(decision, attempts[::-1]) == summary_lines(decision, attempts)


def test_an_attempt_without_reason_or_folder() -> None:
    made = (an_attempt("did-not-finish", "control"), *broken_attempts("trial-37"))
    lines = of(case_inputs(checks=(control("did-not-finish"),)), attempts=made[:1])
    assert "the agent ended before it asked for the failing step" in flat(section(lines, "What proved nothing"))
    assert "see:" not in flat(lines)


def test_a_decision_of_another_version_without_a_reason_is_still_shown() -> None:
    case = CaseResult.model_validate(
        {
            "case_id": "c",
            "state": "open",
            "scenarios": [{"name": "control", "planned": 1, "run": 1, "result": "inconclusive"}],
        }
    )
    lines = summary_lines(GateDecision(decision="unproven", profile="nightly", cases=(case,)))
    assert "no reason is recorded" in flat(lines)
