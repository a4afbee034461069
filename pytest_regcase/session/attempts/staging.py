"""The places and the supplier's orders of one attempt, and how what came of it is read and judged.

The same whoever runs the agent: a process of ours, or a test function. Starts nothing and never prints.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_regcase.agents import outputs, work_tree
from pytest_regcase.agents.launch import Places
from pytest_regcase.config import AgentConfig
from pytest_regcase.records.attempt import AttemptRecord, Draw, TrialSummary, WireSummary
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.observed import FaultNotes, Observed, WorkTreeNotes
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.wire import Delivery, NotApplicable, WireFacts
from pytest_regcase.recovery.agent_clock import AgentClock, clock_of, in_agent_time
from pytest_regcase.recovery.differences import told
from pytest_regcase.recovery.judge import judge
from pytest_regcase.recovery.said import said_of
from pytest_regcase.recovery.stopping import stop_of
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.session.attempts.begun import Begun
from pytest_regcase.session.attempts.separation import own_texts
from pytest_regcase.session.attempts.supply import supplier_spec
from pytest_regcase.session.project.rules_in_force import expected_recovery
from pytest_regcase.supplier.inject import declares_for
from pytest_regcase.supplier.replies import steps_followed
from pytest_regcase.supplier.spec import ClockSpec, SupplierSpec
from pytest_regcase.supplier.wire_log import read_wire_log

NO_TASK_TEXT: Final = "The case holds no task text. Work on the files in the current folder until you are done."
"""What the agent is given where a case has no `[task]`; it says so itself."""
DEFAULT_MODEL: Final = "regcase-model"


def task_text(begun: Begun) -> str:
    """Return what the agent is asked to do."""
    return begun.loaded.task_text() or NO_TASK_TEXT


def task_id(begun: Begun) -> str:
    """Return the recorded task's id, else the case's."""
    return begun.loaded.case.observation.task_id or begun.loaded.id


def throw_away_key() -> str:
    """Return a key that opens nothing, for one attempt."""
    return f"sk-regcase-{secrets.token_hex(16)}"


class Stage:
    """What one attempt is played on: its folder, its work tree, the wire log of its supplier."""

    def __init__(self, begun: Begun, config: AgentConfig) -> None:
        self.begun = begun
        self.config = config
        self.folder = begun.new_folder()
        self.places = Places.below(self.folder)
        self.wire_log = self.folder / "wire.jsonl"
        self.task_text = task_text(begun)
        self.marks = outputs.OutputMarks({})
        self.log: Path | None = None
        self._base: str | None = None

    @property
    def relative_folder(self) -> str:
        """The folder as the record names it."""
        return self.begun.relative(self.folder)

    def lay_work_tree(self) -> None:
        """Put the case's work tree in its place.

        Raises:
            UsageRefused, MachineryError: it cannot be laid, or git is missing or fails.
        """
        self._base = work_tree.lay(self.begun.loaded.work_tree(), self.places.work_dir)

    def spec(self, clock: ClockSpec | None = None) -> SupplierSpec:
        """Return what the supplier is told.

        Raises:
            UnknownName, ExtensionError, FileError: the fault, or its settings, are none that there are.
        """
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
        return replace(spec, clock=clock)

    def take_notes(self, t: float) -> FaultNotes:
        """Note what lies there at the first faulted request, before the fault is sent."""
        self.marks = outputs.mark(self.places, log=self.log)
        return FaultNotes(t=t, work_tree=self.work_tree(), sizes_bytes=self.marks.sizes_bytes)

    def work_tree(self) -> WorkTreeNotes | None:
        """Return what the agent changed in the work tree so far; None without one."""
        return None if self._base is None else work_tree.note(self.places.work_dir, self._base)

    def facts(
        self, spec: SupplierSpec, *, ended_by_us_at: float | None, connects: tuple[float, ...] | None
    ) -> tuple[WireFacts, AgentClock]:
        """Read the wire log. The supplier has to be stopped: only then is it complete."""
        last_step, failing_step = steps_followed(spec)
        events = read_wire_log(self.wire_log)
        agent_clock = clock_of(events)
        facts = wire_facts(
            in_agent_time(events, agent_clock),
            declares=self._declares(),
            ended_by_us_at=None if ended_by_us_at is None else agent_clock.at(ended_by_us_at),
            last_step=last_step,
            failing_step=failing_step,
            connects=connects,
        )
        return facts, agent_clock

    def judged(
        self, observed: Observed, placeholders: Mapping[str, str], *, time_scale: float, seed: int | None
    ) -> AttemptRecord:
        """Judge what was observed and return the record."""
        begun = self.begun
        expected = expected_recovery(begun.project, begun.loaded.case, begun.plan.hypothesis)
        judgement = judge(expected, observed, begun.loaded.case.symptom_match)
        return begun.record(
            # A function has no exit code; what stands for one is for the judge alone.
            exit=observed.exit.model_copy(update={"code": None}) if observed.in_process else observed.exit,
            wire=_summary(observed, time_scale),
            trial=_trial_summary(observed.artefact),
            findings=judgement.findings,
            verdict=judgement.verdict,
            says=judgement.says,
            reason=judgement.reason,
            said=said_of(observed, own_texts(begun.project, self.folder, placeholders))
            if begun.plan.kind == "simulation" and judgement.verdict != "inconclusive"
            else None,
            draw=_draw(observed.wire, seed) if begun.plan.kind == "live" else None,
            folder=self.relative_folder,
        )

    def _declares(self) -> Callable[[str, bool], Delivery | NotApplicable] | None:
        simulation = self.begun.simulation
        return None if simulation is None else declares_for(simulation.simulation)


def _summary(observed: Observed, time_scale: float) -> WireSummary:
    facts = observed.wire
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


def _draw(facts: WireFacts, seed: int | None) -> Draw:
    texts = [reply.model_dump(mode="json", include={"text", "tool_calls"}) for reply in facts.replies]
    return Draw(
        # Without ids of the upstream's own nothing shows that an answer was drawn for this attempt.
        fresh=bool(facts.upstream_ids),
        seed=seed,
        response_digest=digest_of(texts) if texts else None,
        upstream_ids=facts.upstream_ids,
    )
