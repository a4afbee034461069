"""One attempt from plan to record: supplier and agent are started, watched, read and judged, in this order.

Whatever an attempt shows becomes a record, a breakdown of our own machinery too. It never prints.
"""

import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_regcase.agents import clock, connect_audit, outputs, work_tree
from pytest_regcase.agents.launch import Places, prepare
from pytest_regcase.agents.placeholders import fill
from pytest_regcase.agents.process import AgentProcess, run_cleanup
from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import AgentConfig, Project
from pytest_regcase.errors import ImportRefused, RegcaseError, UsageRefused
from pytest_regcase.importers.source import read_output
from pytest_regcase.records.attempt import (
    AttemptPlan,
    AttemptRecord,
    Draw,
    Exit,
    TrialSummary,
    WireSummary,
)
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.observed import FaultNotes, Observed, WorkTreeNotes
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.wire import Delivery, NotApplicable, WireFacts
from pytest_regcase.records.words import InconclusiveReason
from pytest_regcase.recovery.agent_clock import AgentClock, clock_of, in_agent_time
from pytest_regcase.recovery.differences import told
from pytest_regcase.recovery.judge import judge
from pytest_regcase.recovery.said import said_of
from pytest_regcase.recovery.stopping import stop_of
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.session.plan import agent_config
from pytest_regcase.session.rules_in_force import expected_recovery
from pytest_regcase.session.separation import own_texts
from pytest_regcase.session.supply import supplier_spec
from pytest_regcase.session.unfinished import identity
from pytest_regcase.session.watch import Budgets, watch
from pytest_regcase.supplier.inject import declares_for
from pytest_regcase.supplier.process import SupplierProcess
from pytest_regcase.supplier.replies import steps_followed
from pytest_regcase.supplier.spec import ClockSpec, SupplierSpec
from pytest_regcase.supplier.wire_log import read_wire_log

NO_TASK_TEXT = "The case holds no task text. Work on the files in the current folder until you are done."
"""What the agent is given where a case has no `[task]`; it says so itself."""
WRITTEN_AFTER_LIMIT_BYTES = 256 * 1024
DEFAULT_MODEL = "regcase-model"


def run_attempt(
    project: Project,
    loaded: LoadedCase,
    simulation: LoadedSimulation | None,
    plan: AttemptPlan,
    snapshot: SessionSnapshot,
    *,
    try_number: int,
) -> AttemptRecord:
    """Run one attempt and return its record.

    Never raises for what the attempt shows: a supplier or supervisor of ours that breaks makes the record
    `inconclusive`. KeyboardInterrupt passes on after everything that the attempt started was ended.
    """
    begun = _Begun(project, loaded, simulation, plan, snapshot, try_number, datetime.now(UTC), time.monotonic())
    try:
        if begun.passes_through and project.config.upstream is None:
            return begun.inconclusive(
                "no-live-supplier",
                "[tool.regcase.upstream] is not configured, so there is no live supplier to run against",
            )
        return _Attempt(begun).run()
    except RegcaseError as error:
        return begun.inconclusive("machinery-broke", error.text)
    except OSError as error:
        return begun.inconclusive("machinery-broke", f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class _Begun:
    """What is known of an attempt before anything of it ran."""

    project: Project
    loaded: LoadedCase
    simulation: LoadedSimulation | None
    plan: AttemptPlan
    snapshot: SessionSnapshot
    try_number: int
    started_at: datetime
    t0: float

    @property
    def passes_through(self) -> bool:
        """Whether the real supplier answers."""
        return self.plan.kind == "live" or self.loaded.case.passes_through

    def inconclusive(self, why: InconclusiveReason, text: str, *, folder: str | None = None) -> AttemptRecord:
        return self.record(verdict="inconclusive", reason=why, says=text, folder=folder)

    def record(self, **facts: object) -> AttemptRecord:
        about = identity(
            self.project, self.loaded, self.simulation, self.plan, self.snapshot, try_number=self.try_number
        )
        return AttemptRecord.model_validate(
            {
                **about,
                "started_at": self.started_at,
                "duration_seconds": round(time.monotonic() - self.t0, 3),
                **facts,
            }
        )


class _Attempt:
    """The attempt in progress. Made once, run once."""

    def __init__(self, begun: _Begun) -> None:
        self.begun = begun
        self.config: AgentConfig = agent_config(begun.project, begun.plan.key.agent)
        self.folder = _new_folder(Path(begun.snapshot.folder), begun)
        self.places = Places.below(self.folder)
        self.wire_log = self.folder / "wire.jsonl"
        self.connects = self.folder / "connects"
        self.task_text = begun.loaded.task_text() or NO_TASK_TEXT
        # Never used before, so that no answer can be the repetition of an earlier draw.
        self.seed = secrets.randbelow(2**31)
        self.base: str | None = None
        self.marks = outputs.OutputMarks({})
        self.log: Path | None = None

    def run(self) -> AttemptRecord:
        begun = self.begun
        self.base = work_tree.lay(begun.loaded.work_tree(), self.places.work_dir)
        spec = self._spec()
        key_name = spec.pass_through.api_key_env if spec.pass_through is not None else None
        with SupplierProcess.start(spec, env_key=key_name) as supplier:
            launch = prepare(
                self.config,
                begun.plan.key.agent,
                self.places,
                task_text=self.task_text,
                task_id=begun.loaded.case.observation.task_id or begun.loaded.id,
                attempt=begun.plan.key.run,
                seed=self.seed,
                openai_base_url=supplier.openai_base_url,
                anthropic_base_url=supplier.anthropic_base_url,
                api_key=f"sk-regcase-{secrets.token_hex(16)}",
                container=supplier.container,
                model=self.config.model or DEFAULT_MODEL,
                live_env=os.environ if begun.plan.kind == "live" else None,
                project_root=begun.project.root,
            )
            launch = replace(launch, agent_only=self._agent_only(spec, supplier.openai_base_url, launch.env))
            if self.config.log is not None:
                self.log = self.places.work_dir / fill(self.config.log, launch.placeholders, where="log")
            try:
                with AgentProcess.start(launch, self.places) as agent:
                    seen = watch(supplier, agent, self._budgets(spec.clock), self._take_notes, t0=begun.t0)
                    ended_at = (agent.ended_at or time.monotonic()) - begun.t0
                    exit_ = agent.exit
                supplier.stop()
            finally:
                # A container outlives whoever started it, also where we broke down or are interrupted.
                not_cleaned_up = run_cleanup(launch, self.places)
        trouble = seen.trouble or not_cleaned_up
        if trouble is not None:
            return begun.inconclusive("machinery-broke", trouble, folder=self._relative_folder())
        last_step, failing_step = steps_followed(spec)
        events = read_wire_log(self.wire_log)
        agent_clock = clock_of(events)
        ended_by_us_at = seen.ended_by_us_at
        facts = wire_facts(
            in_agent_time(events, agent_clock),
            declares=self._declares(),
            ended_by_us_at=None if ended_by_us_at is None else agent_clock.at(ended_by_us_at),
            last_step=last_step,
            failing_step=failing_step,
            connects=connect_audit.connects(self.connects),
        )
        return self._judged(facts, exit_, agent_clock, ended_at, seen.notes, launch.placeholders)

    def _agent_only(self, spec: SupplierSpec, base_url: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which the agent gets its clock, and its connects are noted."""
        if self.begun.plan.kind == "live":
            return {}
        connect_audit.lay(self.connects, base_url, self.begun.t0)
        own = connect_audit.variables(self.connects, env)
        if spec.clock is not None:
            own |= clock.variables(Path(spec.clock.library), Path(spec.clock.state), env)
        return own

    def _spec(self) -> SupplierSpec:
        begun = self.begun
        spec = supplier_spec(
            begun.loaded,
            begun.simulation.simulation if begun.simulation is not None else None,
            wire_log=self.wire_log,
            t0=begun.t0,
            task_text=self.task_text,
            closing=self.config.closing_reply,
            upstream=begun.project.config.upstream if begun.passes_through else None,
            reach=begun.project.config.supplier.reach,
        )
        return replace(spec, clock=self._clock())

    def _clock(self) -> ClockSpec | None:
        """Say which clock the agent gets: live attempts have none of their own, the control has it unswitched."""
        scale = self.config.time_scale
        if scale == 1 or self.begun.plan.kind == "live":
            return None
        if self.begun.passes_through:
            raise UsageRefused(
                f"Couldn't run the agent {self.begun.plan.key.agent!r} in compressed time (time_scale ="
                f" {scale:g}): the real supplier answers this case, in real time.\n"
                "Name an agent with time_scale = 1 in the case."
            )
        library = clock.library(self.begun.project.root / ".regcase" / "clock")
        return ClockSpec(state=str(self.folder / "clock.state"), scale=scale, library=str(library))

    def _budgets(self, agent_clock: ClockSpec | None) -> Budgets:
        config = self.config
        cap = config.cap_seconds
        if self.begun.plan.kind == "live" and config.live_cap_seconds is not None:
            cap = config.live_cap_seconds
        return Budgets(
            cap_seconds=cap,
            deadline_seconds=config.deadline_seconds,
            ends_by_itself=config.closing_reply is not None,
            time_scale=1 if agent_clock is None else agent_clock.scale,
        )

    def _take_notes(self, t: float) -> FaultNotes:
        self.marks = outputs.mark(self.places, log=self.log)
        return FaultNotes(t=t, work_tree=self._work_tree(), sizes_bytes=self.marks.sizes_bytes)

    def _work_tree(self) -> WorkTreeNotes | None:
        return None if self.base is None else work_tree.note(self.places.work_dir, self.base)

    def _declares(self) -> Callable[[str, bool], Delivery | NotApplicable] | None:
        simulation = self.begun.simulation
        if simulation is None:
            return None
        return declares_for(simulation.simulation)

    def _judged(
        self,
        facts: WireFacts,
        exit_: Exit,
        agent_clock: AgentClock,
        ended_at: float,
        notes: FaultNotes | None,
        placeholders: Mapping[str, str],
    ) -> AttemptRecord:
        begun, config = self.begun, self.config
        artefact, missing = self._artefact(placeholders)
        declared = outputs.declared(config, self.places, placeholders)
        observed = Observed(
            kind=begun.plan.kind,
            wire=facts,
            exit=exit_,
            ended_seconds=agent_clock.at(ended_at),
            deadline_seconds=config.deadline_seconds,
            notes=notes,
            work_tree=self._work_tree(),
            artefact=artefact,
            artefact_missing=missing,
            declared=declared,
            can_show=artefact.can_show if artefact is not None else (),
            written_after=outputs.written_after(self.places, self.marks, WRITTEN_AFTER_LIMIT_BYTES, log=self.log)
            if notes is not None
            else {},
            task_text=self.task_text,
            recorded_failing_step=begun.loaded.case.observation.failing_step,
            fault_heals=begun.simulation is not None and begun.simulation.simulation.fault.heals,
            submits_by=config.submits_by,
        )
        expected = expected_recovery(begun.project, begun.loaded.case, begun.plan.hypothesis)
        judgement = judge(expected, observed, begun.loaded.case.symptom_match)
        return begun.record(
            exit=exit_,
            wire=_summary(facts, observed, agent_clock.scale),
            trial=_trial_summary(artefact),
            findings=judgement.findings,
            verdict=judgement.verdict,
            says=judgement.says,
            reason=judgement.reason,
            said=said_of(observed, own_texts(begun.project, self.folder, placeholders))
            if begun.plan.kind == "simulation" and judgement.verdict != "inconclusive"
            else None,
            draw=_draw(facts, self.seed if _uses_seed(config) else None) if begun.plan.kind == "live" else None,
            folder=self._relative_folder(),
        )

    def _relative_folder(self) -> str:
        return os.path.relpath(self.folder, self.begun.project.root)

    def _artefact(self, placeholders: Mapping[str, str]) -> tuple[Trial | None, str | None]:
        if self.config.output is None:
            return None, f"[tool.regcase.agents.{self.begun.plan.key.agent}] declares no output"
        path = Path(fill(self.config.output, placeholders, where="output"))
        try:
            return read_output(path, importer=self.config.importer), None
        except ImportRefused as refused:
            return None, refused.text


def _new_folder(session_folder: Path, begun: _Begun) -> Path:
    key = begun.plan.key
    name = f"{key.case_id}.{key.scenario}.{key.run}.{begun.try_number}"
    parent = session_folder / "attempts"
    for suffix in range(1, 1000):
        folder = parent / (name if suffix == 1 else f"{name}.again-{suffix}")
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise FileExistsError(f"{parent / name} and its 999 successors are taken")


def _summary(facts: WireFacts, observed: Observed, time_scale: float) -> WireSummary:
    return WireSummary(
        delivered=facts.delivered,
        why_not=facts.why_not,
        requests=facts.requests,
        faulted_requests=facts.faulted_requests,
        retries=facts.retries,
        client_retries=facts.client_retries,
        refused_connects=facts.refused_connects,
        requests_a_step=facts.requests_a_step,
        side_calls=facts.side_calls,
        differences=told(facts.differences),
        first_fault_seconds=facts.first_fault_seconds,
        stopped_seconds=stop_of(observed).seconds,
        time_scale=time_scale,
    )


def _trial_summary(artefact: Trial | None) -> TrialSummary:
    if artefact is None:
        return TrialSummary()
    error = artefact.error
    return TrialSummary(
        termination=artefact.termination,
        outcome=artefact.outcome,
        error=None if error is None else ": ".join(filter(None, (error.type, error.message)))[:500] or None,
    )


def _uses_seed(config: AgentConfig) -> bool:
    return any("{seed}" in text for text in (*(config.command or ()), *config.env.values()))


def _draw(facts: WireFacts, seed: int | None) -> Draw:
    texts = [reply.model_dump(mode="json", include={"text", "tool_calls"}) for reply in facts.replies]
    return Draw(
        # Without ids of the upstream's own nothing shows that an answer was drawn for this attempt.
        fresh=bool(facts.upstream_ids),
        seed=seed,
        response_digest=digest_of(texts) if texts else None,
        upstream_ids=facts.upstream_ids,
    )
