"""`regcase summary`: prints what became of every task of a run. Decides nothing."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.tables import table
from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.batches.summary import Summary, TaskSummary

_RETRY = {"now": "now", "after-budget-reset": "after the budget's reset", "never": "no use as it is", None: ""}


@click.command(
    epilog="""\b
Example:
  regcase summary runs/0412
  regcase summary runs/0412 --reports logs/run_evaluation/0412 --json
"""
)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--reports",
    type=click.Path(path_type=Path, exists=True),
    help="SWE-bench reports of this run: a folder of them, or one file.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def summary(folder: Path, reports: Path | None, as_json: bool) -> None:
    """Say what became of every task of a run.

    One status a task, the first that holds: not_reached, interrupted, agent_error, patch_capture_failed, unscored,
    empty_patch, resolved, unresolved. A crash stays one, whatever a scorer made of what it left; a scorer's labels
    are clues. FOLDER may also hold several runs.
    """
    from pytest_regcase.session.batches.summary import runs_in, summarise

    folders = runs_in(folder)
    if reports is not None and len(folders) > 1:
        raise click.UsageError(f"--reports are those of one run, and {folder} holds {len(folders)}: name one.")
    found = [summarise(each, reports) for each in folders]
    if as_json:
        several = {"schema": 1, "runs": [_document(each) for each in found]}
        click.echo(json.dumps({"schema": 1, **_document(found[0])} if len(found) == 1 else several, indent=2))
        return
    for each in found:
        click.echo("\n".join(_lines(each)))
    click.echo(_attempts(found))
    for line in _next(found):
        click.echo(line)


def _document(summary: "Summary") -> dict[str, Any]:
    return {
        "folder": str(summary.folder),
        "requested": len(summary.tasks),
        "kind": summary.kind,
        "counts": summary.counts,
        "degraded": summary.degraded,
        "tasks": [
            {
                key: value
                for key, value in {
                    "id": each.task_id,
                    "status": each.status,
                    "degraded": each.degraded,
                    "quality": each.quality,
                    "retry": each.retry,
                    "cause": each.cause,
                    "error": each.error,
                    "clues": list(each.clues),
                    "lost": list(each.lost),
                    "earlier_attempts": each.earlier_attempts,
                }.items()
                if value is not None
            }
            for each in summary.tasks
        ],
        "notices": list(summary.notices),
    }


def _lines(summary: "Summary") -> Iterator[str]:
    from pytest_regcase.importers.reading import printable

    yield f"{summary.folder}: {summary.kind} run"
    rows = [
        (each.task_id, each.status + (", degraded" if each.degraded else ""), _RETRY[each.retry])
        for each in summary.tasks
    ]
    yield from table(("task", "status", "run again"), rows)
    counts = [f"{count} {status}" for status, count in summary.counts.items() if count]
    yield f"{len(summary.tasks)} requested: {', '.join(counts)}"
    if summary.degraded:
        yield f"{summary.degraded} degraded: evidence of them was lost; failed_step in trial.jsonl says how"
    for each in summary.tasks:
        yield from (wrapped(printable(line)) for line in _about(each))
    yield from (wrapped(printable(f"notice: {each}"), first="") for each in summary.notices)


def _about(task: "TaskSummary") -> Iterator[str]:
    if task.error is not None:
        said = " ".join(task.error.split())
        yield f"{task.task_id}: {said[:300]}" + (f" [{task.cause}]" if task.cause else "")
    tolerated = task.lost if task.error is None else ()
    if tolerated:
        yield f"{task.task_id}: lost {', '.join(tolerated)}"
    telling = [
        each for each in task.clues if each.startswith("infra:") or "failure" in each or "own grader" in each
    ]
    if telling:
        yield f"{task.task_id}: clues, not causes: {', '.join(telling)}"
    if task.earlier_attempts:
        yield f"{task.task_id}: {task.earlier_attempts} earlier attempts are kept in earlier-attempts"


def _attempts(found: "Sequence[Summary]") -> str:
    real = sum(each.attempts for each in found if each.kind == "real")
    controlled = sum(each.attempts for each in found if each.kind == "controlled")
    parts = []
    if real or not controlled:
        parts.append(f"{real} real {'attempt' if real == 1 else 'attempts'}")
    if controlled:
        parts.append(
            f"{controlled} controlled {'check, not a result' if controlled == 1 else 'checks, not results'}"
        )
    return "; ".join(parts)


def _next(found: "Sequence[Summary]") -> Iterator[str]:
    for each in found:
        counts = each.counts
        worth_it = any(task.status == "agent_error" and task.retry == "now" for task in each.tasks)
        if counts["not_reached"] or counts["interrupted"] or worth_it:
            yield f"Next: regcase run --out {each.folder} --resume" + (" --crashed" if worth_it else "")
        crashed = next((task for task in each.tasks if task.status == "agent_error"), None)
        if crashed is not None:
            yield f"Next: regcase new --from-trial {each.folder / crashed.task_id}"
