"""The logs of a sweep, one after another: whether each is whole, and which trials are of a case's population.

Reads logs; knows no ledger, no fix and no revision. Keeps no conversation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.collection import Collection, Entry, collect, without_secrets
from pytest_regcase.importers.reading import on_one_line
from pytest_regcase.importers.recognise import Progress, Unreadable
from pytest_regcase.session.sweeps.known_cases import KnownCase
from pytest_regcase.session.sweeps.sweep import has_record
from pytest_regcase.session.sweeps.trial_draws import LightTrial, light_trial

NOT_IN_THE_LOG: Final = "its log holds no record of it but that it was to be made"
_LOST: Final = frozenset({"corrupt", "no-record"})
"""Refusals of trials that a log should hold and does not."""
_NEVER_MADE: Final = frozenset({"never-ran", "cancelled-sibling"})


@dataclass
class ReadLog:
    """One log, read."""

    label: str
    trials: list[LightTrial] = field(default_factory=list)
    not_run: dict[str, str] = field(default_factory=dict)
    """By trial of the population, why it was not made."""
    set_aside: dict[str, str] = field(default_factory=dict)
    """By trial, why nobody can say what it is."""
    other_tasks: int = 0
    not_whole: str | None = None
    """Why the log is not there as a whole; None where it is."""

    @property
    def content(self) -> frozenset[str]:
        """Which trials it holds, whatever it is called: equal for two copies of a log."""
        return frozenset(each.identity for each in self.trials)

    @property
    def showing(self) -> int:
        """How many of its trials show the symptom."""
        return sum(any(draw.verdict.verdict == "recurred" for draw in each.draws) for each in self.trials)


class SweepLogs:
    """Reads the logs of a sweep for one case."""

    def __init__(self, case: KnownCase, *, case_digest: str, of_task: bool, progress: Progress | None) -> None:
        self.unreadable: list[Unreadable] = []
        self._case = case
        self._case_digest = case_digest
        self._of_task = of_task
        self._progress = progress

    def read(self, paths: Sequence[Path], importer: str | None) -> Iterator[ReadLog]:
        """Yield each log. A path that cannot be read loses none of the others.

        Raises:
            ImportRefused: the only path cannot be read, or none of several can.
        """
        refusals: list[ImportRefused] = []
        for path in paths:
            try:
                with collect(path, importer=importer, progress=self._progress) as found:
                    yield from self._logs(found, on_one_line(f"{path}::") if len(paths) > 1 else "")
            except ImportRefused as refusal:
                refusals.append(refusal)
                self.unreadable.append(Unreadable(path, refusal))
        if len(refusals) == len(paths):
            raise refusals[0]

    def _logs(self, found: Collection, prefix: str) -> Iterator[ReadLog]:
        by_log: dict[Path, list[Entry]] = {}
        for entry in found.entries:
            by_log.setdefault(entry.source.path, []).append(entry)
        broken = {each.path: each.refusal for each in found.unreadable}
        self.unreadable.extend(each for each in found.unreadable if each.path not in by_log)
        done = 0
        for path, entries in by_log.items():
            refusal = broken.get(path)
            log = ReadLog(prefix + found.label(path))
            log.not_whole = _first_line(refusal) if refusal is not None else _why_not_whole(entries)
            for entry in entries:
                done += 1
                if self._progress is not None:
                    self._progress(done, len(found.entries), entry.key)
                try:
                    self._take(log, found, entry, prefix + entry.key)
                except ImportRefused as refused:
                    log.not_whole = log.not_whole or _first_line(refused)
            yield log

    def _take(self, log: ReadLog, found: Collection, entry: Entry, name: str) -> None:
        task, ref = self._case.loaded.case.observation.task_id, entry.ref
        if self._of_task and None not in (task, ref.task_id) and task != ref.task_id:
            log.other_tasks += 1
        elif entry.notes:
            log.set_aside[name] = without_secrets(entry.notes[0])
        elif ref.refusal in _NEVER_MADE:
            log.not_run[name] = without_secrets(ref.why_not or "it never ran")
        elif ref.refusal not in _LOST:
            self._read(log, found, entry, name)

    def _read(self, log: ReadLog, found: Collection, entry: Entry, name: str) -> None:
        trial = found.read(entry)
        case = self._case
        light = light_trial(case.loaded, case.task_text, name, trial, case_digest=self._case_digest)
        if self._of_task and light.own_task is None:
            log.set_aside[name] = "which task it is of is not recorded"
        elif self._of_task and not light.own_task:
            log.other_tasks += 1
        elif not has_record(trial):
            log.not_run[name] = NOT_IN_THE_LOG
        else:
            log.trials.append(light)


def _why_not_whole(entries: Sequence[Entry]) -> str | None:
    if any(each.ref.termination == "cut-off" for each in entries):
        return "it is cut off: what is lost of it may be what failed"
    lost = next((each.ref for each in entries if each.ref.refusal in _LOST), None)
    return None if lost is None else without_secrets(lost.why_not or "a trial of it has no record")


def _first_line(refusal: ImportRefused) -> str:
    return without_secrets(refusal.text.splitlines()[0])
