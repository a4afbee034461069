"""Counts the trials of a sweep as live attempts of a case: each log once, whole logs only, what ran by the log.

Reads logs and git, writes attempts and one session a run into the ledger. Judges by the rules of live attempts and
decides nothing: where the claim stands the gate's own rules say. Never prints.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pytest_regcase.case_files import LoadedCase, load_case
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.importers.recognise import Progress, Unreadable
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord, Digests
from pytest_regcase.records.decision import Claim, Reason
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.words import AttemptVerdict, CaseState
from pytest_regcase.rules.lifecycle import in_utc, is_retired, last_fix
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.plan import agent_config
from pytest_regcase.session.planning.run_numbers import given_numbers
from pytest_regcase.session.revisions.log_revision import LogRevisions, Ran
from pytest_regcase.session.sweeps.before_fix import BeforeFix
from pytest_regcase.session.sweeps.known_cases import KnownCase
from pytest_regcase.session.sweeps.sweep_logs import SweepLogs
from pytest_regcase.session.sweeps.trial_draws import LightTrial, TrialDraw, record_of

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger

_ABOUT_LIVE_RUNS: Final = frozenset(
    {"recurred", "case-regressed", "failed-otherwise", "other-ledger", "claim-overdue"}
    | {"set-aside", "repeated-draws", "repeated-transcripts", "identical-transcripts"}
)
"""Codes of the gate's reasons that counting bears on."""
_AT_ONCE: Final = 500
"""So many attempts are stored in one transaction."""


@dataclass(frozen=True)
class Counted:
    """A draw that is in the ledger now."""

    trial: str
    record: AttemptRecord
    retried: bool
    """An attempt that the harness made again: a draw that failed."""
    present: bool
    """It has the digests of an attempt made now; else it is set aside by every decision on those."""
    fresh: bool
    """It is a draw of its own."""


@dataclass
class Count:
    """What became of every trial of the case's population in the given logs: each is in one of the groups."""

    case_id: str
    path: Path
    population: Literal["task", "sweep"]
    counted: list[Counted] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    """In the ledger since an earlier count: their logs count once."""
    not_run: dict[str, str] = field(default_factory=dict)
    """By trial, why it proves nothing: cancelled, never ran, ended before it came to the point."""
    set_aside: dict[str, str] = field(default_factory=dict)
    """By trial, why it is no draw for the claim: what the case was made of, before the fix, no time recorded."""
    not_whole: dict[str, str] = field(default_factory=dict)
    """By log, why nothing of it counts."""
    copies: list[str] = field(default_factory=list)
    """Logs that hold what another of them holds."""
    unreadable: list[Unreadable] = field(default_factory=list)
    other_tasks: int = 0
    """Trials of other tasks: they are no draws of this case's population."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Why it is not known with what trials ran that were counted, and how many."""
    assumed: set[str] = field(default_factory=set)
    """What was taken to be so because no log says otherwise."""
    runs: int = 0
    """How many runs of a harness the counted trials are from: sessions of the ledger."""
    has_fix: bool = False
    state: CaseState = "open"
    claim: Claim | None = None
    reasons: tuple[Reason, ...] = ()
    """What the gate says of the case now."""

    @property
    def trials(self) -> int:
        """How many trials of the population the whole logs hold, each once."""
        counted = {each.trial for each in self.counted}
        return len(counted) + len(self.known) + len(self.not_run) + len(self.set_aside)

    @property
    def verdicts(self) -> dict[AttemptVerdict, int]:
        """How many of the counted draws have each verdict."""
        found: dict[AttemptVerdict, int] = {}
        for each in self.counted:
            found[each.record.verdict] = found.get(each.record.verdict, 0) + 1
        return found


def count(
    project: Project,
    path: Path,
    logs: Sequence[Path],
    *,
    importer: str | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> Count:
    """Enter the trials of the logs that are of the population of the case in file `path` as live attempts.

    A log that is cut off, or not to be read as a whole, counts nothing: what is lost of it may be what failed. The
    trials that the case was made of, and those of the sweep that its baseline counts, are never counted. What ran
    before the last fix was claimed does not count for it. With `dry_run` nothing is written.

    Raises:
        ImportRefused: the only path cannot be read, or none of several can.
        FileError: the case is not right as it is.
        UsageRefused: the case is retired.
        UnknownName: it names an agent that is not configured.
        LedgerError: the ledger cannot be opened or written.
    """
    from pytest_regcase.session.gate import ledger_for
    from pytest_regcase.session.gating.standing import decide_over_ledger, snapshot_of_now

    loaded = load_case(path)
    agent_config(project, loaded.case.agent)
    if is_retired(loaded.case):
        raise UsageRefused(
            f"Couldn't count for {loaded.id}: it is retired, so nothing of it is counted.\n"
            f"To bring it back: regcase reopen {loaded.id} --why ..."
        )
    with ledger_for(project) as ledger:
        snapshot = snapshot_of_now(project, [loaded], ledger)
        key = AttemptKey(case_id=loaded.id, agent=loaded.case.agent, scenario="live")
        present = attempt_digests(project, loaded, None, AttemptPlan(key=key, kind="live"), snapshot)
        counting = _Counting(project, loaded, ledger, present)
        counting.read(logs, importer, progress)
        counting.enter(dry_run=dry_run)
        result = counting.result
        decision = decide_over_ledger(project, [loaded], ledger, snapshot)
    (case,) = decision.cases
    result.state, result.claim = case.state, case.claim
    result.reasons = tuple(
        each for each in decision.reasons if each.case_id == loaded.id and each.code in _ABOUT_LIVE_RUNS
    )
    return result


@dataclass(frozen=True)
class _Trial:
    light: LightTrial
    draws: tuple[TrialDraw, ...]
    """Those that prove something."""
    ran: Ran

    @property
    def place(self) -> tuple[datetime, str]:
        """What trials are sorted by: when they began."""
        return self.draws[0].at, self.draws[-1].attempt_id


class _Counting:
    """One count: what was read of the logs, and what of it is new."""

    def __init__(self, project: Project, loaded: LoadedCase, ledger: "Ledger", present: Digests) -> None:
        baseline = loaded.case.baseline
        self.result = Count(
            loaded.id,
            loaded.path,
            "task" if baseline is None else baseline.population,
            has_fix=last_fix(loaded.case) is not None,
        )
        self._project = project
        self._loaded = loaded
        self._known_case = KnownCase(loaded)
        self._ledger = ledger
        self._present = present
        self._revisions = LogRevisions(project, loaded, loaded.case.agent, present)
        self._before_fix = BeforeFix(loaded, self._revisions)
        self._trials: list[_Trial] = []
        self._seen: set[str] = set()

    def read(self, logs: Sequence[Path], importer: str | None, progress: Progress | None) -> None:
        """Read the logs one after another, and keep what may count of those that are whole."""
        result = self.result
        reading = SweepLogs(
            self._known_case,
            case_digest=self._present.case,
            of_task=result.population == "task",
            progress=progress,
        )
        contents = set()
        for log in reading.read(logs, importer):
            if log.not_whole is not None:
                shows = f"; {how_many(log.showing, 'trial')} in it with the symptom" if log.showing else ""
                result.not_whole[log.label] = log.not_whole + shows
            elif log.trials and log.content in contents:
                result.copies.append(log.label)
            else:
                contents.add(log.content)
                result.not_run |= log.not_run
                result.set_aside |= log.set_aside
                result.other_tasks += log.other_tasks
                for light in log.trials:
                    self._take(light)
        result.unreadable = reading.unreadable

    def _take(self, light: LightTrial) -> None:
        """Keep a trial that may count; note why another does not."""
        if light.identity in self._seen:
            return  # the very same trial, in another log
        self._seen.add(light.identity)
        why = self._why_never(light)
        if why is not None:
            self.result.set_aside[light.name] = why
            return
        draws = tuple(each for each in light.draws if each.verdict.verdict != "inconclusive")
        if not draws:
            self.result.not_run[light.name] = light.draws[-1].verdict.says
            return
        ran = self._revisions.of(light.trial)
        before = self._before_fix.why(ran, draws[0].at)
        if before is not None:
            self.result.set_aside[light.name] = before
        else:
            self._trials.append(_Trial(light, draws, ran))

    def _why_never(self, light: LightTrial) -> str | None:
        case = self._loaded.case
        if self._known_case.holds(light.trial):
            return "the case was made of it, or lists it"
        if case.baseline is not None and self._is_of_the_baseline(light):
            return "it is of the sweep that the baseline counts"
        if not light.draws:
            return "its log does not say when it ran"
        return None

    def _is_of_the_baseline(self, light: LightTrial) -> bool:
        """Say whether it is of the run, or of a file, that the case's own trial is from."""
        observation, trial = self._loaded.case.observation, light.trial
        harness = (trial.harness or trial.format).split(" ")[0]
        same_run = trial.run_id is not None and observation.source_event.startswith(f"{harness}/{trial.run_id}/")
        digests = set(observation.source_digests.values())
        return same_run or not digests.isdisjoint(trial.source_digests.values())

    def enter(self, *, dry_run: bool) -> None:
        """Store what is new, in the order in which it counts."""
        from pytest_regcase.ledger.sweeps import append_all, known_attempts

        ids = {draw.attempt_id for trial in self._trials for draw in trial.draws}
        known = known_attempts(self._ledger, self._loaded.id, ids)
        new = [each for each in self._in_order() if self._is_new(each, known)]
        made = [(each, draw) for each in new for draw in each.draws if draw.attempt_id not in known]
        records = [record_of(each.light, draw, each.ran, self._loaded) for each, draw in made]
        places = given_numbers(self._project, self._loaded, self._ledger, records)
        records = [each.model_copy(update={"run": place.run}) for each, place in zip(records, places, strict=True)]
        for (trial, draw), record, place in zip(made, records, places, strict=True):
            retried = draw is not trial.light.draws[-1]
            present = record.digests == self._present
            self.result.counted.append(Counted(trial.light.name, record, retried, present, place.fresh))
        self._note_what_ran(new)
        runs = list(_sessions(new))
        self.result.runs = len(runs)
        if dry_run:
            return
        for row in runs:
            self._ledger.start_session(row)
        for start in range(0, len(records), _AT_ONCE):
            append_all(self._ledger, records[start : start + _AT_ONCE])

    def _is_new(self, trial: _Trial, known: Mapping[str, bool]) -> bool:
        """Say whether a draw of it is not in the ledger yet; note what became of the trial where none is."""
        held = [known[each.attempt_id] for each in trial.draws if each.attempt_id in known]
        if len(held) < len(trial.draws):
            return True
        if all(held):
            self.result.set_aside[trial.light.name] = "its row in the ledger was invalidated"
        else:
            self.result.known.append(trial.light.name)
        return False

    def _in_order(self) -> list[_Trial]:
        """By time. Where the whole sweep is the population, in an order that has nothing to do with its tasks: a
        data set's own is no random one, and a claim reads only as many runs as it needs.
        """
        trials = self._trials
        if self.result.population == "sweep":
            return sorted(trials, key=lambda each: each.place[1])
        return sorted(trials, key=lambda each: each.place)

    def _note_what_ran(self, trials: Iterable[_Trial]) -> None:
        for trial in trials:
            for why in trial.ran.unknown:
                self.result.unknown[why] = self.result.unknown.get(why, 0) + 1
            if trial.ran.assumed is not None:
                self.result.assumed.add(trial.ran.assumed)


def _sessions(trials: Iterable[_Trial]) -> Iterator[SessionRow]:
    """Yield a session for each run of a harness, over by itself: its log is whole."""
    by_run: dict[str, list[LightTrial]] = {}
    for each in trials:
        by_run.setdefault(each.light.run, []).append(each.light)
    for run, lights in sorted(by_run.items()):
        began = [each.draws[0].at for each in lights]
        ended = [in_utc(each.trial.ended_at) for each in lights if each.trial.ended_at is not None]
        yield SessionRow(
            session_id=run,
            started_at=min(began),
            finished_at=max((*began, *ended)),
            profile="nightly",
            source="sweep",
        )
