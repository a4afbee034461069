"""One attempt from plan to record: supplier and agent are started, watched, read and judged, in this order.

Whatever an attempt shows becomes a record, a breakdown of our own machinery too. It never prints.
"""

import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_regcase.agents import clock, connect_audit, outputs
from pytest_regcase.agents.launch import prepare
from pytest_regcase.agents.placeholders import fill
from pytest_regcase.agents.process import AgentProcess, run_cleanup
from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import AgentConfig, Project
from pytest_regcase.errors import ImportRefused, RegcaseError, UsageRefused
from pytest_regcase.importers.source import read_output
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord, Exit
from pytest_regcase.records.observed import FaultNotes, Observed
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.wire import WireFacts
from pytest_regcase.recovery.agent_clock import AgentClock
from pytest_regcase.session.attempts.begun import Begun
from pytest_regcase.session.attempts.staging import DEFAULT_MODEL, Stage, task_id, throw_away_key
from pytest_regcase.session.attempts.watch import Budgets, watch
from pytest_regcase.session.plan import agent_config
from pytest_regcase.supplier.process import SupplierProcess
from pytest_regcase.supplier.spec import ClockSpec, SupplierSpec

WRITTEN_AFTER_LIMIT_BYTES: Final = 256 * 1024


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
    begun = Begun(project, loaded, simulation, plan, snapshot, try_number)
    try:
        if (why := begun.why_no_supplier) is not None:
            return begun.inconclusive("no-live-supplier", why)
        return _Attempt(begun).run()
    except RegcaseError as error:
        return begun.inconclusive("machinery-broke", error.text)
    except OSError as error:
        return begun.inconclusive("machinery-broke", f"{type(error).__name__}: {error}")


class _Attempt:
    """The attempt in progress. Made once, run once."""

    def __init__(self, begun: Begun) -> None:
        self.begun = begun
        self.config: AgentConfig = agent_config(begun.project, begun.plan.key.agent)
        self.stage = Stage(begun, self.config)
        self.connects = self.stage.folder / "connects"
        # Never used before, so that no answer can be the repetition of an earlier draw.
        self.seed = secrets.randbelow(2**31)

    def run(self) -> AttemptRecord:
        begun, stage = self.begun, self.stage
        stage.lay_work_tree()
        spec = stage.spec(self._clock())
        key_name = spec.pass_through.api_key_env if spec.pass_through is not None else None
        with SupplierProcess.start(spec, env_key=key_name) as supplier:
            launch = prepare(
                self.config,
                begun.plan.key.agent,
                stage.places,
                task_text=stage.task_text,
                task_id=task_id(begun),
                attempt=begun.plan.key.run,
                seed=self.seed,
                openai_base_url=supplier.openai_base_url,
                anthropic_base_url=supplier.anthropic_base_url,
                api_key=throw_away_key(),
                container=supplier.container,
                model=self.config.model or DEFAULT_MODEL,
                live_env=os.environ if begun.plan.kind == "live" else None,
                project_root=begun.project.root,
            )
            launch = replace(launch, agent_only=self._agent_only(spec, supplier.openai_base_url, launch.env))
            if self.config.log is not None:
                stage.log = stage.places.work_dir / fill(self.config.log, launch.placeholders, where="log")
            try:
                with AgentProcess.start(launch, stage.places) as agent:
                    seen = watch(supplier, agent, self._budgets(spec.clock), stage.take_notes, t0=begun.t0)
                    ended_at = (agent.ended_at or time.monotonic()) - begun.t0
                    exit_ = agent.exit
                supplier.stop()
            finally:
                # A container outlives whoever started it, also where we broke down or are interrupted.
                not_cleaned_up = run_cleanup(launch, stage.places)
        trouble = seen.trouble or not_cleaned_up
        if trouble is not None:
            return begun.inconclusive("machinery-broke", trouble, folder=stage.relative_folder)
        facts, agent_clock = stage.facts(
            spec, ended_by_us_at=seen.ended_by_us_at, connects=connect_audit.connects(self.connects)
        )
        observed = self._observed(facts, exit_, agent_clock, ended_at, seen.notes, launch.placeholders)
        return stage.judged(
            observed,
            launch.placeholders,
            time_scale=agent_clock.scale,
            seed=self.seed if _uses_seed(self.config) else None,
        )

    def _agent_only(self, spec: SupplierSpec, base_url: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which the agent gets its clock, and its connects are noted."""
        if self.begun.plan.kind == "live":
            return {}
        connect_audit.lay(self.connects, base_url, self.begun.t0)
        own = connect_audit.variables(self.connects, env)
        if spec.clock is not None:
            own |= clock.variables(Path(spec.clock.library), Path(spec.clock.state), env)
        return own

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
        return ClockSpec(state=str(self.stage.folder / "clock.state"), scale=scale, library=str(library))

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

    def _observed(
        self,
        facts: WireFacts,
        exit_: Exit,
        agent_clock: AgentClock,
        ended_at: float,
        notes: FaultNotes | None,
        placeholders: Mapping[str, str],
    ) -> Observed:
        begun, config, stage = self.begun, self.config, self.stage
        artefact, missing = self._artefact(placeholders)
        return Observed(
            kind=begun.plan.kind,
            wire=facts,
            exit=exit_,
            ended_seconds=agent_clock.at(ended_at),
            deadline_seconds=config.deadline_seconds,
            notes=notes,
            work_tree=stage.work_tree(),
            artefact=artefact,
            artefact_missing=missing,
            declared=outputs.declared(config, stage.places, placeholders),
            can_show=artefact.can_show if artefact is not None else (),
            written_after=outputs.written_after(
                stage.places, stage.marks, WRITTEN_AFTER_LIMIT_BYTES, log=stage.log
            )
            if notes is not None
            else {},
            task_text=stage.task_text,
            recorded_failing_step=begun.loaded.case.observation.failing_step,
            fault_heals=begun.simulation is not None and begun.simulation.simulation.fault.heals,
            submits_by=config.submits_by,
        )

    def _artefact(self, placeholders: Mapping[str, str]) -> tuple[Trial | None, str | None]:
        if self.config.output is None:
            return None, f"[tool.regcase.agents.{self.begun.plan.key.agent}] declares no output"
        path = Path(fill(self.config.output, placeholders, where="output"))
        try:
            return read_output(path, importer=self.config.importer), None
        except ImportRefused as refused:
            return None, refused.text


def _uses_seed(config: AgentConfig) -> bool:
    return any("{seed}" in text for text in (*(config.command or ()), *config.env.values()))
