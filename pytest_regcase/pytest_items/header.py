"""The lines above the tests: what is about to run, where it is counted, what it may cost."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptPlan
from pytest_regcase.session.planning.expected_time import Expected, expected_time
from pytest_regcase.session.planning.opening import Opened

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger


def header_lines(
    opened: Opened, project: Project, ledger: "Ledger", *, minutes: float | None, options: Sequence[str]
) -> list[str]:
    """Return the header of a gate run.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    ledger_rows = ledger.row_count()
    plans = [plan for entry in opened.entries for plan in entry.plans]
    live = [plan for plan in plans if plan.kind == "live"]
    without_agent = sum(entry.agent_is_missing for entry in opened.entries)
    invalid = sum(bool(entry.problems) for entry in opened.entries) - without_agent
    counts = [_many(len(opened.entries) - invalid, "case"), _many(len(plans) - len(live), "check")]
    counts += [_many(len(live), "live run")] if live else []
    counts += [f"{_many(without_agent, 'case')} whose agent is not configured"] if without_agent else []
    counts += [_many(invalid, "invalid case file")] if invalid else []
    rows = "new, empty" if opened.snapshot.ledger_is_new or ledger_rows == 0 else _many(ledger_rows, "attempt")
    shard = f", shard {opened.snapshot.shard}" if opened.snapshot.shard is not None else ""
    lines = [
        f"regcase: profile {opened.snapshot.profile}{shard}; {', '.join(counts)}",
        f"regcase: ledger: {rows} ({_place(project)})",
    ]
    if opened.snapshot.profile == "release":
        lines.append("regcase: nothing is run; for each case its newest session in the ledger decides")
    if minutes is not None:
        lines += [f"regcase: {each}" for each in _room(opened, project, ledger, plans, minutes)]
    if live:
        lines.append(f"regcase: {_cost(live, project, ledger)}")
    if options:
        lines.append(f"regcase: options in force that change what runs: {', '.join(options)}")
    lines += [f"regcase: {notice}" for notice in opened.notices]
    return lines


def _room(
    opened: Opened, project: Project, ledger: "Ledger", plans: Sequence[AttemptPlan], minutes: float
) -> Iterator[str]:
    """What fits into the minutes, and what does not."""
    expected = expected_time(project, plans, ledger)
    yield f"{_minutes(expected)} of {minutes:g} min are planned, {_whence(expected, len(plans))}"
    left_out = opened.snapshot.left_out
    if left_out:
        yield f"no room for {_many(len(left_out), 'case')}: {', '.join(left_out)}"


def _cost(live: Sequence[AttemptPlan], project: Project, ledger: "Ledger") -> str:
    """The live runs' time, as long as those in the ledger did, else at most their caps; prices where known."""
    expected = expected_time(project, live, ledger)
    most = "at most" if expected.by_cap == len(live) else "about"
    text = f"{_many(len(live), 'live run')}, {most} {_minutes(expected)} min {_whence(expected, len(live))}"
    prices = [_price(plan, project) for plan in live]
    known = [each for each in prices if each is not None]
    return f"{text}, about {sum(known):.2f} by the configured cost_per_attempt" if known else text


def _price(plan: AttemptPlan, project: Project) -> float | None:
    agent = project.config.agents.get(plan.key.agent)
    own = None if agent is None else agent.cost_per_attempt
    return own if own is not None else project.config.cost_per_attempt


def _minutes(expected: Expected) -> str:
    return f"{expected.seconds / 60:.0f}" if expected.seconds >= 30 else "1"


def _whence(expected: Expected, attempts: int) -> str:
    """Where the time is from: caps for what was never run."""
    if expected.by_cap == attempts:
        return "one after another (by the agent's cap)"
    caps = f", {_many(expected.by_cap, 'attempt')} by the agent's cap" if expected.by_cap else ""
    return f"one after another (as long as before{caps})"


def _place(project: Project) -> str:
    """Where the ledger is, without a password."""
    if os.environ.get("REGCASE_LEDGER"):
        return "from REGCASE_LEDGER"
    return project.config.ledger if "@" not in project.config.ledger else "a database"


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
