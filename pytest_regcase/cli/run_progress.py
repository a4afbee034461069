"""How a run in progress is shown: a bar on a terminal, one line a task elsewhere, nothing when quiet.

Knows events and the terminal; all of it goes to stderr.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pytest_regcase.session.batches.batch import Progress

_COLUMNS = 80
_TELLING = ("agent_error", "patch_capture_failed", "not_reached")
"""Statuses of which a line says why."""


@contextmanager
def shown_progress(*, quiet: bool) -> "Iterator[Callable[[Progress], None]]":
    """Give what to hand each event to."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _line


def counts_of(progress: "Progress") -> str:
    """Return the counts by status, such as ``2 unscored, 1 agent_error``."""
    return ", ".join(f"{count} {status}" for status, count in sorted(progress.counts.items()))


def time_left(progress: "Progress") -> str:
    """Return how long the rest may take, in words; "" where nobody can tell or nothing is left."""
    if progress.left_seconds is None or progress.done == progress.total:
        return ""
    minutes, seconds = divmod(round(progress.left_seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"about {hours} h {minutes} min left"
    return f"about {minutes} min left" if minutes else f"about {seconds} s left"


def _line(progress: "Progress") -> None:
    if progress.what != "finished":
        return
    left = time_left(progress)
    click.echo(
        f"[{progress.done}/{progress.total}] {progress.task_id}: {progress.status}"
        + (f" ({counts_of(progress)}{f'; {left}' if left else ''})" if progress.total > 1 else ""),
        err=True,
    )
    if progress.says and progress.status in _TELLING:
        click.echo(f"  {progress.says}"[:_COLUMNS], err=True)


@contextmanager
def _bar() -> "Iterator[Callable[[Progress], None]]":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    with Bar(
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        row = bar.add_task("", total=None)

        def show(progress: "Progress") -> None:
            words = [
                counts_of(progress),
                time_left(progress),
                f"now {progress.task_id}" if progress.task_id else "",
            ]
            bar.update(
                row,
                total=progress.total,
                completed=progress.done,
                description="; ".join(each for each in words if each),
            )
            if progress.what == "finished" and progress.says and progress.status in _TELLING:
                bar.console.print(f"{progress.task_id}: {progress.says}", markup=False, highlight=False)

        yield show
