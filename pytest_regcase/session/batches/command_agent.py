"""An agent of `[tool.regcase.agents]` as the recorder runs one: started, watched, and its own log taken over.

Knows one trial at a time; decides nothing about the batch, and never prints. What the agent itself wrote is read
by the same importers as a log of anybody else's.
"""

import os
import secrets
import selectors
import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Final

from pytest_regcase.agents import outputs
from pytest_regcase.agents.launch import Launch, Places, prepare
from pytest_regcase.agents.placeholders import fill
from pytest_regcase.agents.process import AgentProcess, run_cleanup
from pytest_regcase.capture import FailedStep, Recorder
from pytest_regcase.config import AgentConfig, Project
from pytest_regcase.errors import ImportRefused, MachineryError
from pytest_regcase.importers.reading import exception_chain
from pytest_regcase.importers.source import read_output
from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.trial import ErrorLink, TranscriptLine, Trial, TrialError
from pytest_regcase.session.attempts.supply import supplier_spec
from pytest_regcase.session.batches.recorded_failure import AgentDidNotStart, AgentFailed, raised_again
from pytest_regcase.session.plan import agent_config
from pytest_regcase.supplier.process import SupplierProcess
from pytest_regcase.supplier.wire_log import read_wire_log

NO_TASK_TEXT: Final = "The task holds no text. Work on the files in the current folder until you are done."
DEFAULT_MODEL: Final = "regcase-model"
_LOOK_SECONDS: Final = 0.2
_GRACE_SECONDS: Final = 5.0
_LAST_WORDS_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class CommandAgent:
    """Runs one configured agent in trial after trial; may be called from several threads at once."""

    project: Project
    name: str
    seed: int
    attempt: int = 1
    replies: tuple[TranscriptLine, ...] | None = None
    """Of a stand-in for the supplier; None: the agent's real one."""
    stop: Event | None = None
    """Set: the agent is ended and the trial recorded as cancelled."""

    def __call__(self, trial: Recorder) -> None:
        """Run the agent in the trial's work tree and record what it did.

        Raises:
            AgentFailed: it did not end well; in its own words where its log has any.
            MachineryError, UsageRefused: it, or a supplier of ours, cannot be started as configured.
            KeyboardInterrupt: `stop` was set.
        """
        config = agent_config(self.project, self.name)
        places = _places(trial)
        wire_log = trial.folder / "wire.jsonl"
        with ExitStack() as stack:
            supplier = self._supplier(config, trial, wire_log)
            if supplier is not None:
                stack.enter_context(supplier)
            launch = self._launch(config, trial, places, supplier)
            trial.add_cleanup("the agent's home and temporary files", lambda: _remove_leftovers(places))
            if launch.cleanup:
                trial.add_cleanup("the agent's own clean-up command", lambda: _own_cleanup(launch, places))
            agent = stack.enter_context(AgentProcess.start(launch, places))
            cap_seconds = config.live_cap_seconds or config.cap_seconds
            exit_ = self._watch(agent, supplier, cap_seconds)
        if exit_.ended_by == "cap":
            trial.limit(f"cap_seconds = {cap_seconds:g}")
        asked_a_model = supplier is None or any(each["event"] == "request" for each in read_wire_log(wire_log))
        _take_over(trial, config, self.name, places, launch.placeholders, exit_, asked_a_model=asked_a_model)

    def _supplier(self, config: AgentConfig, trial: Recorder, wire_log: Path) -> SupplierProcess | None:
        """Start the stand-in, or one that passes through to the real supplier; None where none is configured."""
        upstream = self.project.config.upstream if self.replies is None else None
        if self.replies is None and upstream is None:
            return None
        spec = supplier_spec(
            None,
            None,
            wire_log=wire_log,
            t0=time.monotonic(),
            task_text=_task_text(trial),
            closing=config.closing_reply,
            upstream=upstream,
            reach=self.project.config.supplier.reach,
        )
        if self.replies is not None:
            spec = replace(spec, lines=tuple(each.to_sparse() for each in self.replies), lines_from="script")
        return SupplierProcess.start(spec, env_key=upstream.api_key_env if upstream is not None else None)

    def _launch(
        self, config: AgentConfig, trial: Recorder, places: Places, supplier: SupplierProcess | None
    ) -> Launch:
        return prepare(
            config,
            self.name,
            places,
            project_root=self.project.root,
            task_text=_task_text(trial),
            task_id=trial.task_id,
            attempt=self.attempt,
            seed=self.seed,
            openai_base_url=supplier.openai_base_url if supplier is not None else "",
            anthropic_base_url=supplier.anthropic_base_url if supplier is not None else "",
            api_key=f"sk-regcase-{secrets.token_hex(16)}",
            container=supplier.container if supplier is not None else {},
            model=config.model or DEFAULT_MODEL,
            live_env=os.environ if self.replies is None else None,
        )

    def _watch(self, agent: AgentProcess, supplier: SupplierProcess | None, cap_seconds: float) -> Exit:
        """Stay until the agent and all that it started has ended, or end it at its cap or when told to."""
        until = time.monotonic() + cap_seconds
        with selectors.DefaultSelector() as selector:
            selector.register(agent.fileno(), selectors.EVENT_READ, agent)
            if supplier is not None:
                selector.register(supplier.fileno(), selectors.EVENT_READ, supplier)
            while not agent.done:
                if self.stop is not None and self.stop.is_set():
                    raise KeyboardInterrupt
                left = until - time.monotonic()
                if left <= 0 and not agent.has_exited:
                    return agent.end(_GRACE_SECONDS, ended_by="cap")
                for key, _ in selector.select(min(_LOOK_SECONDS, max(left, 0.0)) or _LOOK_SECONDS):
                    if key.data is agent:
                        agent.read_messages()
                    elif supplier is not None:
                        _hear(supplier)
                        if supplier.closed:
                            selector.unregister(key.fd)
        return agent.exit


def needs_a_supplier(config: AgentConfig) -> bool:
    """Say whether an agent asks for the address of a supplier, by a placeholder or by being a Python call."""
    texts = (*(config.command or ()), *config.env.values(), *config.wrapper)
    return config.python is not None or any("_base_url" in each for each in texts)


def _hear(supplier: SupplierProcess) -> None:
    for message in supplier.read_messages():
        if message["say"] == "trouble":
            raise MachineryError(
                f"Couldn't go on: our supplier broke down: {message['text']}.\nRun the task again."
            )


def _places(trial: Recorder) -> Places:
    folder = trial.folder.absolute()
    work_dir = trial.work_dir if trial.work_dir is not None else folder / "work"
    return replace(Places.below(folder), work_dir=work_dir.absolute(), out_dir=trial.out_dir.absolute())


def _task_text(trial: Recorder) -> str:
    return trial.config.task_text or NO_TASK_TEXT


def _remove_leftovers(places: Places) -> None:
    for name in ("home", "tmp"):
        shutil.rmtree(places.folder / name, ignore_errors=True)


def _own_cleanup(launch: Launch, places: Places) -> None:
    problem = run_cleanup(launch, places)
    if problem is not None:
        raise MachineryError(f"Couldn't clean up: {problem}.\nSee {places.folder / 'cleanup.txt'}.")


def _take_over(
    trial: Recorder,
    config: AgentConfig,
    name: str,
    places: Places,
    placeholders: Mapping[str, str],
    exit_: Exit,
    *,
    asked_a_model: bool,
) -> None:
    """Record what the agent wrote, and raise what it failed by."""
    artefact = _read(trial, config, name, placeholders)
    failure = _failure(artefact, exit_, places, asked_a_model=asked_a_model)
    if artefact is not None:
        _record_conversation(trial, artefact, failure)
    if failure is not None:
        raise failure
    if artefact is not None and artefact.termination == "limit" and exit_.ended_by is None:
        trial.limit("; ".join(artefact.labels) or "the agent's own")
    declared = outputs.declared(config, places, placeholders)
    if declared.submission is not None:
        trial.submission(patch=declared.submission)
    elif artefact is not None and artefact.submission is not None and artefact.submission.patch is not None:
        trial.submission(patch=artefact.submission.patch)
    answer = declared.answer if declared.answer is not None else artefact.final_text if artefact else None
    if answer is not None:
        trial.final_text(answer)


def _read(trial: Recorder, config: AgentConfig, name: str, placeholders: Mapping[str, str]) -> Trial | None:
    """Return the agent's own log; where it cannot be read that is noted as evidence that was lost."""
    if config.output is None:
        return None
    try:
        return read_output(Path(fill(config.output, placeholders, where="output")), importer=config.importer)
    except ImportRefused as refused:
        trial.failed_step(
            FailedStep.from_exception(
                refused, step_id=f"output of {name}", step_type="agent_output", step_role="evidence", fatal=False
            )
        )
        return None


def _failure(artefact: Trial | None, exit_: Exit, places: Places, *, asked_a_model: bool) -> Exception | None:
    """Return what the agent failed by: its own log's error first, then how its process ended."""
    if exit_.ended_by is not None:
        return None
    if artefact is not None and artefact.error is not None and artefact.termination != "finished":
        return raised_again(artefact.error)
    ended_badly = exit_.signal is not None or exit_.code not in (0, None)
    if not ended_badly and (artefact is None or artefact.termination not in ("error", "never-started")):
        return None
    how = f"signal {exit_.signal}" if exit_.signal is not None else f"exit code {exit_.code}"
    said = _last_words(places.stderr) or _last_words(places.stdout)
    last = next((each.strip() for each in reversed(said.splitlines()) if each.strip()), "")
    words = f"the agent ended with {how}" + (f": {last[:500]}" if last else " and said nothing")
    chain = exception_chain(said)
    raised = None
    if chain and last.startswith(chain[0][0]):
        # A traceback is the last that it said: that is what ended it.
        links = tuple(ErrorLink(type=kind, message=message) for kind, message in chain)
        raised = raised_again(TrialError(type=chain[0][0], message=chain[0][1], chain=links))
        raised.add_note(f"the agent ended with {how}")
    if not asked_a_model:
        not_started = AgentDidNotStart(words)
        not_started.__cause__ = raised
        return not_started
    return raised if raised is not None else AgentFailed(words)


def _record_conversation(trial: Recorder, artefact: Trial, failure: Exception | None) -> None:
    """Take the lines over; the failed call that ended the agent is recorded as what it failed by."""
    lines = list(artefact.steps)
    by_supplier = failure is not None and artefact.error is not None and artefact.error.raised_by == "supplier"
    last = lines.pop() if by_supplier and lines and lines[-1].error is not None else None
    for line in lines:
        trial.take_line(line)
    if by_supplier:
        trial.model_call(step=last.step if last is not None else None, error=failure)


def _last_words(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LAST_WORDS_BYTES))
            said = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return said.strip()
