"""`regcase count`: enters a sweep's trials as live attempts of a case. Prints what counted, and the standing."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.progress import progress
from pytest_regcase.cli.words import GivenPath, wrapped
from pytest_regcase.records.plurals import how_many

if TYPE_CHECKING:
    from pytest_regcase.session.sweeps.count import Count

_SHOWN = 5

CAME_BACK = 1


@click.command(
    epilog="""\b
Example:
  regcase count sweep-0412-trial-37 --from-trials sweeps/0519
  regcase count sweep-0412-trial-37 --from-trials logs/a.eval logs/b.eval
"""
)
@click.argument("name", metavar="CASE")
@click.option(
    "--from-trials",
    "logs",
    metavar="LOGS...",
    required=True,
    multiple=True,
    type=GivenPath(path_type=Path),
    help="Logs, folders of logs or zips of them; as many as you like.",
)
@click.argument("more", nargs=-1, metavar="", type=GivenPath(path_type=Path))
@click.option("--importer", metavar="NAME", help="Which format it is, where two match.")
@click.option("--dry-run", is_flag=True, help="Say what would be counted; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def count(
    name: str,
    logs: tuple[Path, ...],
    more: tuple[Path, ...],
    importer: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Count the trials of a sweep as live attempts of CASE (a case file, its folder, or an id).

    Counted are the trials of the case's task, each once, wherever its log lies; of a case whose baseline counts a
    whole sweep, all trials. A log that is cut off counts nothing. What ran is told by the revision and model that
    the log names: trials of an unknown one are kept, and count for none. What ran before the last fix was claimed
    does not count for it. Then it says where the claim stands, by the rules of the gate.

    Exit code 1 when the symptom came back since the last fix.
    """
    from pytest_regcase.case_files import find_case
    from pytest_regcase.config import load_project
    from pytest_regcase.session.sweeps.count import count as count_trials

    project = load_project(Path.cwd())
    path = find_case(project.case_folders, name)
    with progress() as tell:
        found = count_trials(project, path, (*logs, *more), importer=importer, progress=tell, dry_run=dry_run)
    if as_json:
        click.echo(json.dumps(_document(found, dry_run=dry_run), indent=2))
    else:
        click.echo("\n".join(_lines(found, dry_run=dry_run)))
    if found.state == "regressed":
        raise SystemExit(CAME_BACK)


def _document(found: "Count", *, dry_run: bool) -> dict[str, Any]:
    from pytest_regcase.toml_lines import shown

    return {
        "schema": 1,
        "case_id": found.case_id,
        "file": shown(found.path),
        "dry_run": dry_run,
        "population": found.population,
        "trials": found.trials,
        "counted": [
            {
                "trial": each.trial,
                "attempt_id": each.record.attempt_id,
                "session_id": each.record.session_id,
                "run": each.record.run,
                "verdict": each.record.verdict,
                "says": each.record.says,
                "retried": each.retried,
                "present": each.present,
                "fresh": each.fresh,
            }
            for each in found.counted
        ],
        "known": found.known,
        "not_run": _listed(found.not_run, "trial"),
        "set_aside": _listed(found.set_aside, "trial"),
        "not_whole": _listed(found.not_whole, "log"),
        "copies": found.copies,
        "unreadable": [each.refusal.text for each in found.unreadable],
        "other_tasks": found.other_tasks,
        "unknown": [{"why": why, "trials": trials} for why, trials in sorted(found.unknown.items())],
        "assumed": sorted(found.assumed),
        "state": found.state,
        "claim": None if found.claim is None else found.claim.to_sparse(),
        "reasons": [{"code": each.code, "text": each.text} for each in found.reasons],
    }


def _listed(found: Mapping[str, str], what: str) -> list[dict[str, str]]:
    return [{what: name, "why": why} for name, why in found.items()]


def _lines(found: "Count", *, dry_run: bool) -> Iterator[str]:
    trials = {each.trial for each in found.counted}
    of = "of its task" if found.population == "task" else "of the sweep"
    head = f"{found.case_id}: {how_many(found.trials, 'trial')} {of}, {len(trials)} counted"
    head += f", {len(found.not_run)} not run"
    yield wrapped(head + (" (dry run: nothing is written)" if dry_run else "") + ".", first="")
    if found.counted:
        yield wrapped(_what_was_counted(found))
    if found.known:
        yield wrapped(
            f"already in the ledger, so nothing is added for them: {how_many(len(found.known), 'trial')}"
        )
    yield from _grouped("not run", found.not_run)
    yield from _grouped("set aside", found.set_aside)
    if found.other_tasks:
        yield wrapped(f"of other tasks: {how_many(found.other_tasks, 'trial')}")
    for log, why in found.not_whole.items():
        yield wrapped(f"nothing of {log} counts: {why}")
    for log in found.copies:
        yield wrapped(f"{log} is a copy of another log, and counts once")
    for each in found.unreadable:
        yield wrapped(f"not read: {' '.join(each.refusal.text.split())}")
    yield from (wrapped(f"note: {each}") for each in _notes(found))
    yield from _standing(found)


def _what_was_counted(found: "Count") -> str:
    verdicts = ", ".join(f"{verdict} {number}" for verdict, number in sorted(found.verdicts.items()))
    retried = sum(each.retried for each in found.counted)
    made_again = f", of which {how_many(retried, 'attempt')} that the harness made again" if retried else ""
    return f"{verdicts}{made_again}; from {how_many(found.runs, 'run')} of a harness"


def _grouped(what: str, found: Mapping[str, str]) -> Iterator[str]:
    """Yield a line a reason, with the trials that it is about."""
    by_reason: dict[str, list[str]] = {}
    for name, why in found.items():
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        more = f" and {len(names) - _SHOWN} more (--json lists all)" if len(names) > _SHOWN else ""
        yield wrapped(f"{what}: {why}: {', '.join(names[:_SHOWN])}{more}")


def _notes(found: "Count") -> Iterator[str]:
    for why, number in sorted(found.unknown.items()):
        yield f"{why}: {how_many(number, 'trial')} kept under the log's own words, which count for no revision"
    unknown = any(found.unknown)
    others = sum(not each.present for each in found.counted)
    if others and not unknown:
        yield f"{how_many(others, 'draw')} of another revision or model than the present one: counted for that one"
    without_ids = sum(
        each.record.verdict == "clean" and each.record.draw is not None and not each.record.draw.fresh
        for each in found.counted
    )
    if without_ids:
        yield (
            f"{how_many(without_ids, 'clean trial')} without the supplier's own id of each reply: whether that was"
            " a draw of its own or an answer from a cache is not known, so it is no fresh draw"
        )
    repeated = sum(each.record.verdict == "clean" and not each.fresh for each in found.counted) - without_ids
    if repeated:
        yield f"{how_many(repeated, 'clean trial')} with an answer or a seed that was there before: no fresh draw"
    yield from sorted(found.assumed)
    if found.population == "sweep":
        yield "the baseline counts a whole sweep, so all trials count, and the claim is about the sweep"


def _standing(found: "Count") -> Iterator[str]:
    from pytest_regcase.reporters.terminal import claim_lines

    if not found.has_fix:
        yield wrapped(
            "No fix is claimed: what was counted now ran before one, and does not count for a later claim. When"
            " there is one, claim it first, and count the sweeps that ran with it:",
            first="",
            further="",
        )
        yield f"  regcase fix {found.case_id}"
        return
    if found.claim is not None:
        for number, text in enumerate(claim_lines(found.case_id, found.claim)):
            yield wrapped(text, first="    " if number else "")
    for each in found.reasons:
        yield wrapped(f"{each.code}: {each.text}")
    text, command = _next(found)
    yield wrapped(text, first="", further="")
    yield f"  {command}"


def _next(found: "Count") -> tuple[str, str]:
    claim = found.claim
    if found.state == "regressed" or (claim is not None and claim.refuted_by_run is not None):
        return "The symptom came back, or a run failed. Look into it; when there is another fix:", (
            f"regcase fix {found.case_id}"
        )
    if found.state == "closed":
        return "It is closed, and guarded by what is counted:", f"regcase history {found.case_id}"
    if claim is not None and claim.settled:
        return "The rerun rule is met:", f"regcase close {found.case_id}"
    left = 0 if claim is None else claim.need - claim.clean
    if left > 0:
        return f"Count the next sweep, or make what is missing, {how_many(left, 'run')} that cost model calls:", (
            f"pytest --regcase --regcase-profile=nightly --regcase-live={left}"
        )
    return "See what is not there yet:", f"regcase handover {found.case_id}"
