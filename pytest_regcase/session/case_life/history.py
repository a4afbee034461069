"""The story of a case in time order: what its file records, and what the ledger holds beside it.

Reads only. What stands in the ledger and not in the file is told as that: a file can be edited, a ledger is not.
Never prints.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Final

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.case_files.guarded import ABSENT
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.case import Amendment, RegressionCase
from pytest_regcase.records.session import Transition
from pytest_regcase.rules.lifecycle import in_utc

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger

_DIGEST_SHOWN: Final = len("sha256:") + 12
_RUNS_NAMED: Final = 6
_EXPIRES: Final = re.compile(r"quarantine\.expires \S+ -> (\S+)")
"""An amendment that sets a case aside, or takes its quarantine out."""
_AMENDING: Final = ("amended", "quarantined", "lifted", "on-probation")
"""Transitions that stand in the case file as an amendment."""


@dataclass(frozen=True)
class Event:
    """One thing that happened to a case."""

    at: datetime
    kind: str
    """The record's word, or ``session``."""
    says: str
    who: str | None = None
    why: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    """What belongs to it, as plain JSON: revisions, numbers, what a session showed."""


def case_history(loaded: LoadedCase, ledger: "Ledger | None") -> tuple[Event, ...]:
    """Return everything that is recorded of the case, oldest first.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    events = list(_of_the_file(loaded.case))
    if ledger is not None:
        events += _only_in_the_ledger(loaded.case, ledger.transitions(loaded.id))
        events += _sessions(ledger, [each.record for each in ledger.rows(case_ids=[loaded.id])])
    return tuple(sorted(events, key=lambda each: each.at))


def _of_the_file(case: RegressionCase) -> Iterator[Event]:
    observation = case.observation
    if observation.observed_at is not None:
        says = f"{observation.symptom} ({observation.source_event})"
        yield Event(in_utc(observation.observed_at), "observed", says)
    for fix in case.fix:
        says = f"fix {fix.number} is claimed at revision {_brief(fix.revision)}"
        yield Event(in_utc(fix.at), "fix", says, fix.by, fix.note, {"revision": fix.revision})
    for closed in case.closed:
        facts = {"revision": closed.revision, "numbers": closed.to_plain()["numbers"]}
        yield Event(in_utc(closed.at), "closed", _numbers(closed.numbers), closed.by, facts=facts)
    for reopened in case.reopened:
        yield Event(in_utc(reopened.at), "reopened", "the case is not fixed after all", reopened.by, reopened.why)
    for retired in case.retired:
        yield Event(in_utc(retired.at), "retired", "out of service from here on", retired.by, retired.why)
    for amendment in case.amendments:
        kind, says = _amended(amendment)
        yield Event(in_utc(amendment.at), kind, says, amendment.who, amendment.why)
    for each in case.evidence:
        says = f"{each.id} {each.stance} {each.hypothesis}: {each.file}, lines {each.lines}"
        yield Event(in_utc(each.at), "evidence", says, each.who, each.why)
        if each.withdrawn is not None:
            says = f"{each.id} is withdrawn: it no longer {each.stance} {each.hypothesis}"
            yield Event(in_utc(each.withdrawn.at), "withdrawn", says, each.withdrawn.who, each.withdrawn.why)
    if case.quarantine is not None and not any(
        _amended(each) == ("quarantined", f"set aside until {case.quarantine.expires}") for each in case.amendments
    ):
        says = f"set aside ({case.quarantine.kind}) until {case.quarantine.expires}"
        at = _midnight(case.quarantine.since)
        yield Event(at, "quarantined", says, case.quarantine.owner, case.quarantine.reason)


def _amended(amendment: Amendment) -> tuple[str, str]:
    """The kind of the event that an amendment is, and what it says."""
    moved = _EXPIRES.fullmatch(amendment.what)
    if moved is None:
        return "amended", amendment.what + (", sealed anew" if amendment.old_digest is not None else "")
    if moved[1] == ABSENT:
        return "lifted", "it gates again"
    return "quarantined", f"set aside until {moved[1].strip(chr(34))}"


def _numbers(numbers: dict[str, Any]) -> str:
    clean, need, kind = (numbers.get(key) for key in ("clean", "need", "kind"))
    if clean is None or need is None:  # written by hand
        return "closed on numbers that stand in the file"
    fix = f"fix {numbers['fix_number']}: " if "fix_number" in numbers else ""
    bound = f", upper bound {numbers['bound']}" if "bound" in numbers else ""
    return f"{fix}{clean} of {need} clean live runs" + (f", {kind}{bound}" if kind is not None else "")


def _brief(revision: str) -> str:
    """A digest as a person tells it from another one."""
    return revision[:_DIGEST_SHOWN] if revision.startswith("sha256:") else revision


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)


def _only_in_the_ledger(case: RegressionCase, transitions: Sequence[Transition]) -> Iterator[Event]:
    amended = {in_utc(each.at) for each in case.amendments}
    times = {
        "fix": {in_utc(each.at) for each in case.fix},
        "closed": {in_utc(each.at) for each in case.closed},
        "reopened": {in_utc(each.at) for each in case.reopened},
        "retired": {in_utc(each.at) for each in case.retired},
        **dict.fromkeys(_AMENDING, amended),
    }
    for each in transitions:
        if in_utc(each.at) not in times[each.kind]:
            says = "stands in the ledger, and not in this version of the case file"
            yield Event(in_utc(each.at), each.kind, says, each.who, each.why)


def _sessions(ledger: "Ledger", records: Sequence[AttemptRecord]) -> Iterator[Event]:
    by_session: dict[str, list[AttemptRecord]] = {}
    for each in records:
        by_session.setdefault(each.session_id, []).append(each)
    for session_id, made in by_session.items():
        row = ledger.session(session_id)
        profile = row.profile if row is not None else None
        scenarios: dict[str, list[str]] = {}
        live: dict[str, list[int]] = {}
        for each in made:
            if each.scenario == "live":
                live.setdefault(each.verdict, []).append(each.run)
            else:
                scenarios.setdefault(each.scenario, []).append(each.verdict)
        facts: dict[str, Any] = {"session_id": session_id, "agent_revisions": _revisions(made)}
        facts |= {"profile": profile} if profile is not None else {}
        facts |= {"scenarios": scenarios} if scenarios else {}
        facts |= {"live": live} if live else {}
        at = min(in_utc(each.started_at) for each in made)
        says = "; ".join([*_checks(scenarios), *_live(live)])
        yield Event(at, "session", f"{profile}: {says}" if profile is not None else says, facts=facts)


def _revisions(made: Sequence[AttemptRecord]) -> list[str]:
    return list(dict.fromkeys(each.digests.agent for each in made))


def _checks(scenarios: dict[str, list[str]]) -> Iterator[str]:
    """A verdict with the checks that had it in every try; a check whose tries differ by itself."""
    alike: dict[str, list[str]] = {}
    for name, verdicts in scenarios.items():
        if len(set(verdicts)) == 1:
            alike.setdefault(verdicts[0], []).append(name)
        else:
            yield f"{name} {', then '.join(verdicts)}"
    for verdict, names in alike.items():
        yield f"{verdict}: {', '.join(names)}"


def _live(live: dict[str, list[int]]) -> Iterator[str]:
    counts = Counter({verdict: len(runs) for verdict, runs in live.items()})
    for verdict, count in counts.most_common():
        runs = sorted(live[verdict])
        named = ", ".join(map(str, runs[:_RUNS_NAMED])) + (" and more" if count > _RUNS_NAMED else "")
        if count > 1 and runs == list(range(runs[0], runs[0] + count)):
            named = f"{runs[0]} to {runs[-1]}"
        yield f"{count} live {verdict} (run {named})"
