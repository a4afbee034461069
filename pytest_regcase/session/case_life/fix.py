"""Claims a fix: what is claimed, by whom, and where the ledger stood, go into the case file.

Runs nothing and decides nothing: whether the claim holds is for the rules to say. Never prints.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pytest_regcase.case_files import LoadedCase, append_record, load_case
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.case import Fix
from pytest_regcase.records.session import Transition
from pytest_regcase.rules.claim_plan import risk_of, shown_risk
from pytest_regcase.rules.lifecycle import in_utc, is_retired
from pytest_regcase.session.case_life.life import day, moment, words
from pytest_regcase.session.project.rules_in_force import claim_settings, plan_in_force, rerun_rule
from pytest_regcase.session.project.who import who_acts
from pytest_regcase.session.revisions.revision import revision_of


@dataclass(frozen=True)
class ClaimedFix:
    """What was written, and what the claim now needs."""

    path: Path
    case_id: str
    fix: Fix
    need: int
    """Clean live attempts that the rerun rule asks for."""
    max_failure_rate: str
    risk: str
    notices: tuple[str, ...] = ()


def claim_fix(
    project: Project,
    path: Path,
    *,
    revision: str | None = None,
    by: str | None = None,
    note: str | None = None,
    at: datetime | None = None,
) -> ClaimedFix:
    """Append a ``[[fix]]`` to the case file `path`: the next number, and the ledger's id and length.

    `revision` is by default the digest of the case's agent, which is what its attempts are counted under.

    Raises:
        FileError: the case is not right as it is.
        UnknownName: it names an agent that is not configured.
        UsageRefused: nobody can be named as who claims it, the rule is none that can be decided, a record of the
            case is dated later than now, or it is retired and no note says why it comes back.
        LedgerError: the ledger cannot be opened.
    """
    from pytest_regcase.ledger.claimed_on import claimed_on
    from pytest_regcase.session.gate import ledger_for

    loaded = load_case(path)
    if is_retired(loaded.case) and not note:
        raise UsageRefused(
            f"Couldn't claim a fix of {loaded.id}: it is retired ({_retired(loaded)}), and a fix brings it back"
            " into service.\nIf that is meant, say why with --note."
        )
    rule = rerun_rule(project, loaded.case)
    number = max((each.number for each in loaded.case.fix), default=0) + 1
    need = plan_in_force(project, loaded.case, number).bounds[0]
    risk = shown_risk(risk_of(claim_settings(project), rule, number))
    notices: list[str] = []
    if revision is None:
        found = revision_of(project, loaded.case.agent)
        revision = found.digest
        notices += [found.notice] if found.notice is not None else []
    by = by or who_acts(project.root, "who claims the fix")
    notices += _about_earlier(loaded, revision)
    if is_retired(loaded.case):
        notices.append(f"it was retired ({_retired(loaded)}); from here on it is run and judged again")
    if loaded.case.baseline is None:
        notices.append("no [baseline] says how often the case failed before; `regcase check` is red without one")
    at = moment(loaded, at)
    note = words(loaded, note) if note else note
    with ledger_for(project) as ledger:
        claim = claimed_on(ledger)
        fix = Fix(
            number=number,
            revision=revision,
            ledger_id=claim.ledger_id,
            rows=claim.rows,
            at=at,
            by=by,
            note=note,
        )
        append_record(loaded.path, "fix", fix, seen=loaded.case)
        why = f"fix {number} is claimed" + (f": {note}" if note else "")
        ledger.add_transition(Transition(case_id=loaded.id, at=at, kind="fix", why=why, who=by, evidence=revision))
    return ClaimedFix(loaded.path, loaded.id, fix, need, rule.max_failure_rate, risk, tuple(notices))


def _retired(loaded: LoadedCase) -> str:
    last = max(loaded.case.retired, key=lambda each: in_utc(each.at))
    return f"{last.by} on {day(last.at)}: {last.why}"


def _about_earlier(loaded: LoadedCase, revision: str) -> list[str]:
    earlier = [each.number for each in loaded.case.fix if each.revision == revision]
    if not earlier:
        return []
    return [f"fix {earlier[-1]} was claimed at this same revision; every further claim adds to the risk over all"]
