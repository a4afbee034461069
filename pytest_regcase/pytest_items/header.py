"""The lines above the tests: what is about to run, where it is counted, what it may cost."""

import os
from collections.abc import Sequence

from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptPlan
from pytest_regcase.session.opening import Opened


def header_lines(opened: Opened, project: Project, *, ledger_rows: int, options: Sequence[str]) -> list[str]:
    """Return the header of a gate run."""
    plans = [plan for entry in opened.entries for plan in entry.plans]
    live = [plan for plan in plans if plan.kind == "live"]
    invalid = sum(bool(entry.problems) for entry in opened.entries)
    counts = [_many(len(opened.entries) - invalid, "case"), _many(len(plans) - len(live), "check")]
    counts += [_many(len(live), "live run")] if live else []
    counts += [_many(invalid, "invalid case file")] if invalid else []
    rows = "new, empty" if opened.snapshot.ledger_is_new or ledger_rows == 0 else _many(ledger_rows, "attempt")
    lines = [
        f"regcase: profile {opened.snapshot.profile}; {', '.join(counts)}",
        f"regcase: ledger: {rows} ({_place(project)})",
    ]
    if live:
        lines.append(f"regcase: {_cost(live, project)}")
    if options:
        lines.append(f"regcase: options in force that change what runs: {', '.join(options)}")
    lines += [f"regcase: {notice}" for notice in opened.notices]
    return lines


def _cost(live: Sequence[AttemptPlan], project: Project) -> str:
    """What the live runs may take: caps add up to the longest time, prices only where they are configured."""
    seconds, money, priced = 0.0, 0.0, False
    for plan in live:
        agent = project.config.agents[plan.key.agent]
        seconds += agent.live_cap_seconds or agent.cap_seconds
        price = agent.cost_per_attempt if agent.cost_per_attempt is not None else project.config.cost_per_attempt
        if price is not None:
            money, priced = money + price, True
    text = f"{_many(len(live), 'live run')}, at most {seconds / 60:.0f} min one after another"
    return f"{text}, about {money:.2f} by the configured cost_per_attempt" if priced else text


def _place(project: Project) -> str:
    """Where the ledger is, without a password."""
    if os.environ.get("REGCASE_LEDGER"):
        return "from REGCASE_LEDGER"
    return project.config.ledger if "@" not in project.config.ledger else "a database"


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
