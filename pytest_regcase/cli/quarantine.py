"""`regcase quarantine`: prints which cases may be set aside and which may come back, or moves one by hand.

Decides nothing.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.safe_text import redacted, redacted_document, visible
from pytest_regcase.cli.words import Words, wrapped
from pytest_regcase.records.moments import utc_text
from pytest_regcase.records.plurals import how_many

if TYPE_CHECKING:
    from pytest_regcase.session.case_life.quarantine import CaseStanding, QuarantineReport
    from pytest_regcase.session.case_life.set_aside import Moved

_MOST_DAYS = 14


@click.command(
    epilog="""\b
Example:
  regcase quarantine --propose
  regcase quarantine sweep-0412-trial-37 --broken --days 7 \\
      --why "the sandbox is down"
  regcase quarantine sweep-0412-trial-37 --lift --why "it is up again"
"""
)
@click.argument("names", metavar="[CASE]...", nargs=-1)
@click.option("--propose", is_flag=True, help="Say what the rule says of each case; so does no option at all.")
@click.option("--broken", is_flag=True, help="Set CASE aside by hand, as broken.")
@click.option("--lift", is_flag=True, help="Take CASE's quarantine out: it gates again.")
@click.option("--why", type=Words(), help="Why, for the reader; needed with --broken and --lift.")
@click.option(
    "--days",
    type=click.IntRange(1, _MOST_DAYS),
    default=_MOST_DAYS,
    show_default=True,
    help="How long it is set aside, with --broken.",
)
@click.option(
    "--probation",
    is_flag=True,
    help="With --lift: it gates again although clean runs are missing; the second failure ends that.",
)
@click.option(
    "--by", type=Words(), help="Who does it. [default: your name and address in git, else the user name]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def quarantine(
    names: tuple[str, ...],
    propose: bool,
    broken: bool,
    lift: bool,
    why: str | None,
    days: int,
    probation: bool,
    by: str | None,
    as_json: bool,
) -> None:
    """Say which cases are flaky beyond the budget, and which of those set aside may come back.

    A quarantined case runs and is reported, and does not gate. Its first attempts must have shown, by an exact
    bound, that it is flaky beyond the budget; a case that only fails is never flaky. What is proposed is printed
    as a table for its owner to paste: nothing here writes a proposal into a case file. CASE is a case file, its
    folder, or an id.

    With --broken a person sets one CASE aside, for at most 14 days. --lift takes the table out again: a flaky one
    needs a change and the clean runs of the budget (else exit code 1), or --probation. Both are recorded in the
    case file and in the ledger.
    """
    if broken + lift + propose > 1:
        raise click.UsageError("Give one of --propose, --broken and --lift.")
    if probation and not lift:
        raise click.UsageError("--probation goes with --lift.")
    if not broken and not lift:
        if why is not None or by is not None:
            raise click.UsageError("--why and --by go with --broken and --lift.")
        _report(names, as_json=as_json)
        return
    option = "--broken" if broken else "--lift"
    if len(names) != 1:
        raise click.UsageError(f"{option} is for one CASE.")
    if why is None:
        raise click.UsageError(f"{option} needs --why TEXT: it is written down for the reader.")
    _move(names[0], broken=broken, why=why, days=days, probation=probation, by=by, as_json=as_json)


def _move(name: str, *, broken: bool, why: str, days: int, probation: bool, by: str | None, as_json: bool) -> None:
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life import set_aside
    from pytest_regcase.toml_lines import shown

    project = load_project(Path.cwd())
    path = find_case(project.case_folders, name)
    if broken:
        done = set_aside.set_aside_broken(project, path, why=why, days=days, by=by)
    else:
        done = set_aside.lift(project, path, why=why, on_probation=probation, by=by)
    if as_json:
        document = {
            "schema": 1,
            "case_id": done.case_id,
            "file": shown(done.path),
            "kind": done.kind,
            "quarantine": done.quarantine.to_plain(),
            "at": utc_text(done.at),
            "by": done.by,
            "says": list(done.says),
        }
        click.echo(json.dumps(redacted_document(document), indent=2))
        return
    click.echo("\n".join(_moved_lines(done)))


def _moved_lines(done: "Moved") -> Iterator[str]:
    from pytest_regcase.toml_lines import shown

    if done.kind == "quarantined":
        until = f"set aside as broken until {done.quarantine.expires} by {done.by}"
        yield wrapped(f"wrote {shown(done.path)}: {until}", first="")
        yield wrapped("It runs and is reported, and does not gate. When it is repaired:", first="")
        yield f"  regcase quarantine {done.case_id} --lift --why ..."
        return
    on_probation = " on probation" if done.kind == "on-probation" else ""
    yield wrapped(f"wrote {shown(done.path)}: it gates again{on_probation}, says {done.by}", first="")
    yield from (wrapped(each) for each in done.says)
    yield "Next:"
    yield "  pytest --regcase"


def _report(names: tuple[str, ...], *, as_json: bool) -> None:
    from pytest_regcase.config import load_project
    from pytest_regcase.session.case_life.quarantine import quarantine_report
    from pytest_regcase.session.gating.standing import reading_ledger

    project = load_project(Path.cwd())
    ledger, not_read = reading_ledger(project)
    try:
        report = quarantine_report(project, ledger, names)
    finally:
        if ledger is not None:
            ledger.close()
    if as_json:
        click.echo(json.dumps(redacted_document(_document(report, not_read)), indent=2))
        return
    lines = list(_lines(report, named=bool(names)))
    if not_read is not None:
        lines.append(wrapped(f"note: {not_read}", first=""))
    click.echo("\n".join(redacted(lines)))


def _document(report: "QuarantineReport", not_read: str | None) -> dict[str, object]:
    from pytest_regcase.toml_lines import shown

    document: dict[str, object] = {
        "schema": 1,
        "flake_budget": report.flake_budget,
        "in_service": report.in_service,
        "quarantined": report.quarantined,
        "most": report.most,
    }
    document |= {"ledger_not_read": not_read} if not_read is not None else {}
    document |= {"written": [shown(each) for each in report.written]} if report.written else {}
    return {**document, "cases": [_plain(each) for each in report.cases]}


def _plain(case: "CaseStanding") -> dict[str, object]:
    from pytest_regcase.session.case_life.quarantine import quarantine_text

    plain: dict[str, object] = {"case_id": case.loaded.id}
    if case.quarantine is not None:
        plain |= {"quarantine": case.quarantine.to_plain(), "expired": case.expired}
    if case.exits:
        plain["may_leave"] = case.may_leave
        plain["exits"] = [{"scenario": each.scenario, **each.exit.to_sparse()} for each in case.exits]
    if case.probations:
        plain["probation"] = [
            {
                "scenario": each.scenario,
                "since": utc_text(each.since),
                "runs": each.rule.runs,
                "attempts": each.attempts,
                "failures": each.failures,
                "failed": each.failed,
                "says": each.says,
            }
            for each in case.probations
        ]
    if case.proposed is not None:
        plain |= {"proposed": case.proposed.to_plain(), "table": quarantine_text(case.proposed)}
    plain |= {"beyond_cap": True} if case.beyond_cap else {}
    plain["checks"] = [
        {
            "scenario": each.scenario,
            "over_budget": each.over_budget,
            "flake_rate": each.rate.to_sparse(),
            "found": each.found.to_sparse(),
            **({"drift_alarm": each.alarm.to_sparse()} if each.alarm is not None else {}),
        }
        for each in case.checks
    ]
    return plain


def _lines(report: "QuarantineReport", *, named: bool) -> Iterator[str]:
    from pytest_regcase.rules.exact import percent

    out = f"{report.quarantined} of {how_many(report.in_service, 'case')} set aside, at most {report.most} may be"
    yield wrapped(f"{out}; a case may flake in {percent(report.flake_budget)} of its first attempts.", first="")
    told = [each for each in report.cases if named or _has_news(each)]
    for each in told:
        yield ""
        yield from _case_lines(each)
    quiet = len(report.cases) - len(told)
    if quiet:
        yield ""
        yield f"{how_many(quiet, 'case')}{' more' * bool(told)}: nothing to propose."
    if report.written:
        from pytest_regcase.toml_lines import shown

        yield wrapped(f"wrote {', '.join(map(shown, report.written))}", first="")


def _has_news(case: "CaseStanding") -> bool:
    checks = any(each.over_budget or each.fails_always or each.alarm is not None for each in case.checks)
    return checks or case.quarantine is not None or bool(case.probations)


def _case_lines(case: "CaseStanding") -> Iterator[str]:
    yield wrapped(f"{case.loaded.id}: {_headline(case)}", first="")
    if case.quarantine is not None:
        yield wrapped(visible(f"owner {case.quarantine.owner}: {case.quarantine.reason}"))
    for exit_ in case.exits:
        yield wrapped(f"{exit_.scenario}: {exit_.exit.says}")
    for way in case.probations:
        yield wrapped(f"{way.scenario}: {way.says}")
    # Of a case that is out as flaky, its way back says it all.
    for check in () if case.exits else case.checks:
        yield wrapped(f"{check.scenario}: {_why(check.found)}")
        if check.alarm is not None:
            yield wrapped(f"{check.scenario}: drift alarm: {check.alarm.says}")
    yield from _next_lines(case)


def _headline(case: "CaseStanding") -> str:
    if case.quarantine is not None:
        until = f"set aside as {case.quarantine.kind} until {case.quarantine.expires}"
        until += ", which is over" if case.expired else ""
        return until + ("; it may come back" if case.may_leave else "")
    if case.proposed is not None:
        return "proposed for quarantine"
    if case.beyond_cap:
        return "over the budget, but beyond the cap: repair one of those set aside first"
    if any(each.fails_always for each in case.checks):
        return "fails always, so not proposed"
    if case.probations:
        return "gates again, on probation"
    return "nothing to propose" if case.checks else "nothing is known of its checks"


def _why(found: object) -> str:
    return str(getattr(found, "says", None) or getattr(found, "why", ""))


def _next_lines(case: "CaseStanding") -> Iterator[str]:
    from pytest_regcase.session.case_life.quarantine import quarantine_text
    from pytest_regcase.toml_lines import shown

    case_id = case.loaded.id
    if case.proposed is not None:
        yield wrapped(f"Its owner may paste this above [seal] of {shown(case.loaded.path)}:")
        yield ""
        yield from _visible_lines(quarantine_text(case.proposed))
        yield ""
        yield "  and record why:"
        yield f"    regcase amend {case_id} --why ..."
    elif case.may_leave:
        yield f"  regcase quarantine {case_id} --lift --why ..."
    elif case.expired:
        yield "  it is red until it is repaired, or its owner renews it:"
        yield f"    regcase amend {case_id} --field quarantine.expires=DATE --why ..."
    elif case.exits and all(each.exit.granted or each.exit.probation is not None for each in case.exits):
        yield "  for probation:"
        yield f"    regcase quarantine {case_id} --lift --probation --why ..."
    elif case.quarantine is not None and case.quarantine.kind == "broken":
        yield "  when it is repaired:"
        yield f"    regcase quarantine {case_id} --lift --why ..."


def _visible_lines(text: str) -> list[str]:
    return [visible(each) for each in text.splitlines()]
