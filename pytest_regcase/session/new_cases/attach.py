"""Copies the part of a lower-level log that lies in a trial's time into the case, before the log rotates away.

Redacted and uninterpreted: what it shows is for `regcase evidence` to cite and for people to weigh. Must not
print.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pytest_regcase.errors import UsageRefused
from pytest_regcase.evidence.log_lines import LogUnreadable, read_lines
from pytest_regcase.evidence.log_times import time_of
from pytest_regcase.evidence.window import Window, shown_time, window_between
from pytest_regcase.importers.reading import printable
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import Trial
from pytest_regcase.redaction import Redactor

FOLDER: Final = "recorded/attached"
PART_LIMIT_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True)
class Attached:
    """The parts of logs that go into a case."""

    files: dict[str, bytes]
    """By name relative to the case's folder."""
    redactions: dict[str, int]
    says: tuple[str, ...]


def window_of(trial: Trial) -> Window | None:
    """Return the trial's own time and two minutes on either side; None where none of its times is recorded.

    Where a single time is recorded, fifteen minutes before it are taken as well.
    """
    times = [line.at for line in trial.steps if line.at is not None]
    start = trial.started_at or min(times, default=None)
    end = trial.ended_at or max(times, default=None)
    return window_between(start, end)


def attach(trial: Trial, logs: Sequence[Path], redactor: Redactor) -> Attached:
    """Return the part of each log that lies in the time of `trial`, redacted by the trial's own `redactor`.

    Plain text, JSON lines, or either in gzip. A line without a time belongs to the line before it.

    Raises:
        UsageRefused: the trial has no time, a log cannot be read, nothing of it lies in that time, or too much.
    """
    window = window_of(trial)
    if logs and window is None:
        raise UsageRefused(
            f"Couldn't attach {logs[0]}: the trial's log records no time, so no part of it can be told to be of"
            " the trial.\nCut the part out by hand and cite it with `regcase evidence`.",
            slug="no-time",
        )
    before = redactor.counts.copy()
    files: dict[str, bytes] = {}
    says: list[str] = []
    for log in logs:
        assert window is not None
        lines = list(_part(log, window))
        for line in lines:
            redactor.learn(line)
        name = f"{FOLDER}/{_name(log, redactor)}"
        if name in files:
            raise UsageRefused(
                f"Couldn't attach {log}: another attached file has its name.\nGive one of them another name."
            )
        # As a whole: a private key spans lines.
        files[name] = redactor.text("".join(f"{line}\n" for line in lines)).encode("utf-8", "replace")
        says.append(
            printable(
                f"{log.name}: {how_many(len(lines), 'line')} of {window.says}; times without an offset read as UTC"
            )
        )
    return Attached(files, dict(redactor.counts - before), tuple(says))


def _part(log: Path, window: Window) -> Iterator[str]:
    """Yield the lines in the window.

    Raises:
        UsageRefused: see `attach`.
    """
    near = window.end
    taking = False
    timed = size = 0
    first: datetime | None = None
    last: datetime | None = None
    try:
        for line in read_lines(log):
            text = line.text
            at = time_of(text, near)
            if at is not None:
                timed += 1
                first, last = min(first or at, at), max(last or at, at)
                taking = window.holds(at)
            if taking:
                size += len(line.raw)
                if size > PART_LIMIT_BYTES:
                    raise _refused(
                        log,
                        f"more than {PART_LIMIT_BYTES // 1024**2} MiB of it lie in {window.says}",
                        "Cut the lines that matter out of it, and give that file.",
                    )
                yield text
    except LogUnreadable as error:
        raise _refused(log, error.why, error.what_to_do) from error
    if not size:
        if not timed:
            raise _refused(
                log,
                "no line of it begins with a time that we can read",
                "Cut the part out by hand and cite it.",
                slug="no-time",
            )
        assert first is not None
        assert last is not None
        raise _refused(
            log,
            f"nothing of it lies in {window.says}; it goes from {shown_time(first)} to {shown_time(last)}",
            "Give the log of that time; times without an offset are read as UTC.",
            slug="outside-the-window",
        )


def _name(log: Path, redactor: Redactor) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", redactor.text(log.name.removesuffix(".gz"))).strip(".-")
    return name[-100:].lstrip(".-") or "log"


def _refused(log: Path, why: str, what_to_do: str, *, slug: str = "not-attached") -> UsageRefused:
    return UsageRefused(printable(f"Couldn't attach {log}: {why}.\n{what_to_do}"), slug=slug)
