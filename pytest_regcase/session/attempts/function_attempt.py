"""One attempt in which a function of the test process is the agent: supplier, work tree and folder when asked for.

Cannot end the function, nor see what it prints or starts; what follows from that is the judge's, see
`Observed.in_process`. At the agent's deadline or cap it takes the supplier away, so that a client that waits for
an answer gets an error. Never prints, and knows nothing of pytest.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_regcase.agents import outputs
from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import AgentConfig, Project
from pytest_regcase.errors import ImportRefused, RegcaseError, UsageRefused
from pytest_regcase.importers.source import read_output
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord, Exit
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.words import EndedBy, InconclusiveReason
from pytest_regcase.session.attempts.begun import Begun
from pytest_regcase.session.attempts.function_supplier import RunningSupplier
from pytest_regcase.session.attempts.own_check import failed_by
from pytest_regcase.session.attempts.staging import DEFAULT_MODEL, Stage, task_id, task_text, throw_away_key
from pytest_regcase.session.attempts.watch import Budgets, Watched
from pytest_regcase.session.plan import agent_config

NEVER_ASKED = "the function asked for no supplier, so nothing was sent to it"
AFTER_CUT_OFF = "what came after we took the supplier away is not read"
_COARSE_SECONDS = 0.011
"""By so much a file system may be behind the clock: it takes the time of the last timer tick, and there are at
least 100 a second."""
_CUT_OFF: frozenset[EndedBy] = frozenset({"deadline", "cap", "cut-short"})


@dataclass(frozen=True)
class FunctionEnd:
    """How the call of the function ended."""

    how: Literal["returned", "raised", "own-check", "interrupted"]
    """``own-check``: an assertion or a verdict of the function itself failed. ``interrupted``: somebody else, such
    as a timer, raised in the middle of it."""
    says: str | None = None
    """The exception's type and message, in one line."""
    text: str = ""
    """As a process that ends by it writes it to stderr."""


RETURNED = FunctionEnd("returned")


class FunctionAttempt:
    """The attempt in progress. `finish` ends it with a record, `close` without one."""

    def __init__(
        self,
        project: Project,
        loaded: LoadedCase,
        simulation: LoadedSimulation | None,
        plan: AttemptPlan,
        snapshot: SessionSnapshot,
        *,
        try_number: int,
    ) -> None:
        self._begun = Begun(project, loaded, simulation, plan, snapshot, try_number)
        self._lock = threading.RLock()  # a function may ask from several threads
        self._stage: Stage | None = None
        self._running: RunningSupplier | None = None
        self._attached: Path | Trial | None = None
        self._trouble: tuple[InconclusiveReason, str] | None = None
        self.api_key = throw_away_key()

    @property
    def task(self) -> str:
        """What the agent is asked to do."""
        return task_text(self._begun)

    @property
    def task_id(self) -> str:
        """The recorded task's id, else the case's."""
        return task_id(self._begun)

    @property
    def scenario(self) -> str:
        """``control``, ``live``, or the simulation's id."""
        return self._begun.plan.key.scenario

    @property
    def simulation(self) -> Simulation | None:
        """The simulation; None for control and live."""
        return None if self._begun.simulation is None else self._begun.simulation.simulation

    @property
    def model(self) -> str:
        """The model to ask for."""
        return self._config.model or DEFAULT_MODEL

    def work_dir(self) -> Path:
        """Lay the work tree and return its folder."""
        return self._staged().places.work_dir

    def out_dir(self) -> Path:
        """Make the output folder and return it."""
        return self._staged().places.out_dir

    def openai_base_url(self) -> str:
        """Start the supplier and return its address."""
        return self._supplied().supplier.openai_base_url

    def anthropic_base_url(self) -> str:
        """Start the supplier and return its address for Anthropic's clients."""
        return self._supplied().supplier.anthropic_base_url

    def attach(self, what: Path | str | Trial) -> None:
        """Take what came out; see `RegcaseFixture.attach`.

        Raises:
            UsageRefused: something is attached already, or it is neither a path nor a `Trial`.
        """
        if self._attached is not None:
            raise self._broke(UsageRefused("Couldn't attach a second trial: an attempt has one.\nAttach one."))
        if isinstance(what, Trial):
            self._attached = what
        elif isinstance(what, str | Path):
            self._attached = Path(what).absolute()
        else:
            raise self._broke(
                UsageRefused(
                    f"Couldn't attach a {type(what).__name__}.\n"
                    "Attach the path of a log, or a pytest_regcase.Trial."
                )
            )

    def finish(self, ended: FunctionEnd) -> AttemptRecord:
        """Take everything down, judge, and return the record.

        Never raises for what the attempt shows: a supplier of ours that breaks makes the record `inconclusive`.
        """
        try:
            return self._record(ended)
        except RegcaseError as error:
            return self._inconclusive("machinery-broke", error.text)
        except OSError as error:
            return self._inconclusive("machinery-broke", f"{type(error).__name__}: {error}")
        finally:
            self.close()

    def close(self) -> None:
        """Take the supplier down, where one was started. May be called again."""
        with self._lock:
            if self._running is not None:
                self._running.close()

    @property
    def _config(self) -> AgentConfig:
        return agent_config(self._begun.project, self._begun.plan.key.agent)

    def _staged(self) -> Stage:
        with self._lock:
            if self._stage is None:
                try:
                    stage = Stage(self._begun, self._config)
                    stage.lay_work_tree()
                    stage.places.out_dir.mkdir(exist_ok=True)
                except (RegcaseError, OSError) as error:
                    raise self._broke(error) from error
                self._stage = stage
            return self._stage

    def _supplied(self) -> RunningSupplier:
        with self._lock:
            if self._running is None:
                why = self._begun.why_no_supplier
                if why is not None:
                    self._trouble = ("no-live-supplier", why)
                    raise UsageRefused(f"Couldn't start the supplier: {why}.\nName its base_url there.")
                stage = self._staged()
                try:
                    self._running = RunningSupplier(stage, self._budgets())
                except (RegcaseError, OSError) as error:
                    raise self._broke(error) from error
            return self._running

    def _broke(self, error: Exception) -> Exception:
        """Keep what broke: a function that swallows the exception does not hide it."""
        if self._trouble is None:
            text = error.text if isinstance(error, RegcaseError) else f"{type(error).__name__}: {error}"
            self._trouble = ("machinery-broke", text)
        return error

    def _budgets(self) -> Budgets:
        config = self._config
        cap = config.cap_seconds
        if self._begun.plan.kind == "live" and config.live_cap_seconds is not None:
            cap = config.live_cap_seconds
        return Budgets(
            # Counted from now: a supplier that is asked for late has not been there before.
            cap_seconds=time.monotonic() - self._begun.t0 + cap,
            deadline_seconds=config.deadline_seconds,
            ends_by_itself=config.closing_reply is not None,
        )

    def _inconclusive(self, why: InconclusiveReason, text: str) -> AttemptRecord:
        folder = None if self._stage is None else self._stage.relative_folder
        return self._begun.inconclusive(why, text, folder=folder)

    def _record(self, ended: FunctionEnd) -> AttemptRecord:
        seen = None if self._running is None else self._running.settle()
        trouble = self._trouble or (
            None if seen is None or seen.trouble is None else ("machinery-broke", seen.trouble)
        )
        if trouble is not None:
            return self._inconclusive(*trouble)
        if ended.how == "interrupted":
            return self._inconclusive("machinery-broke", f"interrupted while it ran: {ended.says}")
        if self._running is None or self._stage is None or seen is None:
            what = NEVER_ASKED if ended.says is None else f"{NEVER_ASKED}; it raised {ended.says}"
            return self._inconclusive("not-delivered", what)
        record = self._judged(ended, self._stage, self._running, seen)
        conditions = {"in_process": True} | ({} if ended.says is None else {"raised": ended.says})
        record = record.model_copy(update={"conditions": conditions})
        if ended.how == "own-check":
            # Whatever else it showed: who wrote the function says that it is not as it should be.
            return failed_by(record, self._begun.plan.kind, f"the function's own check failed: {ended.says}")
        return record

    def _judged(self, ended: FunctionEnd, stage: Stage, running: RunningSupplier, seen: Watched) -> AttemptRecord:
        begun, config = self._begun, self._config
        cut_off = running.ended_by in _CUT_OFF
        facts, agent_clock = stage.facts(running.spec, ended_by_us_at=seen.ended_by_us_at, connects=None)
        artefact, missing = (
            (None, "what came after we took the supplier away is not read") if cut_off else self._artefact()
        )
        raised = ended.how == "raised" and not cut_off
        written = {}
        if seen.notes is not None and not cut_off:
            written = outputs.written_after(stage.places, stage.marks) | ({"raised": ended.text} if raised else {})
        ended_at = seen.ended_by_us_at if cut_off and seen.ended_by_us_at is not None else running.ended_at
        observed = Observed(
            kind=begun.plan.kind,
            wire=facts,
            # As of a process: what it raises ends it badly. Taking its supplier away is our doing.
            exit=Exit(code=None if cut_off else int(raised), ended_by=running.ended_by),
            ended_seconds=ended_at,
            deadline_seconds=config.deadline_seconds,
            notes=seen.notes,
            work_tree=stage.work_tree(),
            artefact=artefact,
            artefact_missing=missing,
            can_show=artefact.can_show if artefact is not None else (),
            written_after=written,
            task_text=stage.task_text,
            recorded_failing_step=begun.loaded.case.observation.failing_step,
            fault_heals=begun.simulation is not None and begun.simulation.simulation.fault.heals,
            submits_by=config.submits_by,
            in_process=True,
            raised=ended.says if raised else None,
        )
        own = {
            "api_key": self.api_key,
            "openai_base_url": running.supplier.openai_base_url,
            "anthropic_base_url": running.supplier.anthropic_base_url,
        }
        return stage.judged(observed, own, time_scale=agent_clock.scale, seed=None)

    def _artefact(self) -> tuple[Trial | None, str | None]:
        if self._attached is None:
            return None, "nothing is attached (`regcase.attach`)"
        if isinstance(self._attached, Trial):
            return self._attached, None
        try:
            trial = read_output(self._attached)
        except ImportRefused as refused:
            return None, refused.text
        newest = _newest_of(self._attached, trial)
        if newest.stat().st_mtime < self._begun.started_at.timestamp() - _COARSE_SECONDS:
            # A fixed path, and an agent that died before it wrote there: nothing of it is about this attempt.
            return None, f"{newest.name} was last written before this attempt began"
        return trial, None


def _newest_of(attached: Path, trial: Trial) -> Path:
    """Return that file of a trial which was written last."""
    names = {Path(each).name for each in trial.source_digests}
    within = [each for each in attached.rglob("*") if each.name in names and each.is_file()]
    return max(within, key=lambda each: each.stat().st_mtime) if within else attached
