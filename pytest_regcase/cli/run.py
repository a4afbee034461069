"""`regcase run`: prints how a run of tasks goes. Decides nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.batches.batch import BatchResult

WORKED = ("unscored", "empty_patch", "resolved", "unresolved")
"""Statuses of a trial whose agent ended its work; what it is worth is the summary's to say."""


@click.command(
    epilog="""\b
Example:
  regcase run --tasks tasks.toml --out runs/0412
  regcase run sympy__sympy-20590 --tasks tasks.toml --out runs/one
  regcase run --out runs/0412 --resume --crashed
  regcase summary runs/0412
"""
)
@click.argument("ids", nargs=-1)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The run's folder: run.json, predictions.jsonl, one folder a task.",
)
@click.option(
    "--tasks",
    "tasks_file",
    type=click.Path(path_type=Path),
    help="A .toml or .jsonl file. Default: tasks.toml, or tasks.jsonl, in the project.",
)
@click.option(
    "--agent", default="default", show_default=True, help="For tasks that name none: in [tool.regcase.agents]."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Tasks at the same time.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="What {seed} becomes. Default: one by chance.")
@click.option("--resume", is_flag=True, help="Go on with the run in --out: what was never reached, or cut off.")
@click.option("--crashed", is_flag=True, help="With --resume: run again what crashed, too.")
@click.option("--keep-going", is_flag=True, help="Go on after three start-ups that failed in the same way.")
@click.option(
    "--replies",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A stand-in answers from this script (lines as in transcript.jsonl): a controlled run.",
)
@click.option("--controlled", is_flag=True, help="Say that the agent is a stand-in: no result of a real one.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def run(
    ids: tuple[str, ...],
    out: Path,
    tasks_file: Path | None,
    agent: str,
    jobs: int,
    seed: int | None,
    resume: bool,
    crashed: bool,
    keep_going: bool,
    replies: Path | None,
    controlled: bool,
    quiet: bool,
) -> None:
    """Run an agent on tasks; no crash loses a record.

    IDS are tasks of the file, by default all. Each gets a work tree of its repository, and a folder with its
    trial; one crash does not stop the next. Exit code 0 when every agent ended its work, 1 when one crashed or was
    not reached, 2 when nothing was started, 130 after Ctrl-C: trials in flight are recorded as cancelled.
    """
    from pytest_regcase.cli.run_progress import shown_progress
    from pytest_regcase.config import load_project
    from pytest_regcase.session.batches.batch import opened, run_batch
    from pytest_regcase.session.batches.batch_plan import Wanted

    if crashed and not resume:
        raise click.UsageError("--crashed goes with --resume.")
    if resume and seed is not None:
        raise click.UsageError("--seed is that of the run: leave it out with --resume.")
    wanted = Wanted(
        out=out,
        ids=ids,
        tasks_file=tasks_file,
        agent=agent,
        seed=seed,
        replies=replies,
        controlled=controlled,
        resume=resume,
        crashed=crashed,
    )
    project = load_project(Path.cwd())
    with opened(project, wanted) as batch:
        if not quiet and batch.manifest.kind == "controlled":
            click.echo("Controlled: a stand-in is at work, so this run is a check and no result.", err=True)
        with shown_progress(quiet=quiet) as on_progress:
            try:
                result = run_batch(project, batch, jobs=jobs, keep_going=keep_going, on_progress=on_progress)
            except KeyboardInterrupt:
                # Said behind the bar, and before main's own word for it.
                click.echo(f"What was under way is recorded. Next: regcase run --out {out} --resume", err=True)
                raise
    if not quiet:
        click.echo("\n".join(_lines(result, out)))
    if result.stopped_because is not None and not quiet:
        click.echo(wrapped(f"Stopped: {result.stopped_because}. Correct that, then go on by --resume."), err=True)
    if any(count for status, count in result.counts.items() if status not in WORKED):
        raise SystemExit(1)


def _lines(result: "BatchResult", out: Path) -> list[str]:
    total = len(result.batch.manifest.requested)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(result.counts.items()))
    return [
        f"{total} {'task' if total == 1 else 'tasks'}: {counts}",
        f"Next: regcase summary {out}",
    ]
