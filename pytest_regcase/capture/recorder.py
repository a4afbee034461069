"""The recorder: what an agent loop calls while it runs. Every call is on the disk when it returns.

Knows the lines of `trial.jsonl` and which reply is which step. Runs nothing; the error boundary is in `boundary`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from pytest_regcase.capture.message_parts import failure_of, mapping_of, text_of, tool_call, tool_name
from pytest_regcase.capture.patch import PatchNotCaptured, WorkTree, difference, note_work_tree, read_patch
from pytest_regcase.capture.plain_data import TEXT_LIMIT, as_text
from pytest_regcase.capture.raised import error_of, named_only
from pytest_regcase.capture.trial_config import TrialConfig
from pytest_regcase.capture.trial_file import TrialFile
from pytest_regcase.capture.trial_record import FailedStep, PatchCapture, TrialRecord
from pytest_regcase.causes import exception_chain
from pytest_regcase.errors import RegcaseError, UsageRefused
from pytest_regcase.records.trial import TranscriptLine, TrialError
from pytest_regcase.records.words import RaisedBy, StepRole, Termination

Role = Literal["system", "user", "assistant", "tool"]
_ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class RoleRefused(RegcaseError):
    """A step did what only a step of another role may do."""

    slug = "role-refused"


class Recorder:
    """Writes one trial. Made by `record_trial` and `run_trial`; may be called from several threads.

    Every method raises `WriteError` where the file system refuses, and from then on always.
    """

    def __init__(self, file: TrialFile, folder: Path, task_id: str, config: TrialConfig) -> None:
        self.folder = folder
        self.task_id = task_id
        self.config = config
        self.work_dir: Path | None = config.work_dir
        """Where the agent works; None until an environment has started, where no `work_dir` is configured."""
        self.error: TrialError | None = None
        """What ended the trial; None while nothing has."""
        self.patch_capture: PatchCapture | None = None
        self.cleanups: list[tuple[str, Callable[[], object]]] = []
        self.limit_met: str | None = None
        self.termination: Termination | None = None
        """Why it ended, where the recorder was told."""
        self.is_unfinished = False
        """The agent's work is not to be handed in: it failed, or was interrupted."""
        self._file = file
        self._final_text: str | None = None
        self._tree: WorkTree | None = None
        self._no_tree = "no git work tree was given: say work_dir in the config"
        self._has_patch = self._has_partial_patch = False
        self._replies = 0
        self._lock = threading.RLock()
        self._recorded: BaseException | None = None
        self._failed_call: BaseException | None = None
        self._running: tuple[str, StepRole] | None = None

    @property
    def out_dir(self) -> Path:
        """Where the agent puts its own files; in the trial's folder, and stays there."""
        return self.folder / "out"

    # What an agent loop calls

    def step(
        self,
        role: str,
        text: object = None,
        *,
        step: int | None = None,
        tool_calls: Sequence[Mapping[str, Any]] = (),
        tool_call_id: object = None,
        raw_output: object = None,
        finish: object = None,
        usage: object = None,
        model: object = None,
        offered_tools: Sequence[object] = (),
        error: object = None,
        response_id: object = None,
    ) -> int:
        """Record one message of the conversation; return the step that it belongs to.

        A complete reply of the model (`role` assistant, no `error`) opens the next step; all else belongs to
        the step before it, 0 before the first reply. `step` overrides the count, for a conversation that is
        recorded after it happened. Calls of tools have id, name and arguments (JSON text, or a mapping), or the
        shape that OpenAI's chat completions give them. What is no text is stored as text. `response_id` is the
        supplier's own id of a reply: `regcase count` takes a trial for a draw of its own only where each has one.

        Raises:
            UsageRefused: a role that no conversation has.
        """
        known = _ROLES.get(role) if isinstance(role, str) else None
        if known is None:
            raise UsageRefused(
                f"Couldn't record a message of role {role!r}: there is no such role.\n"
                f"Use one of {', '.join(_ROLES)}."
            )
        with self._lock:
            is_reply = known == "assistant" and error is None
            if step is None:
                step = self._replies + 1 if known == "assistant" else self._replies
            self._write(
                "step",
                step=step,
                role=known,
                text=text_of(text),
                tool_calls=[tool_call(each) for each in tool_calls or ()],
                tool_call_id=text_of(tool_call_id),
                raw_output=text_of(raw_output),
                finish=text_of(finish),
                usage=mapping_of(usage),
                model=text_of(model),
                offered_tools=[tool_name(each) for each in offered_tools or ()],
                error=failure_of(error),
                response_id=text_of(response_id),
                at=_now(),
            )
            if is_reply:
                self._replies = max(self._replies, step)
            return step

    def take_line(self, line: TranscriptLine) -> None:
        """Record a line that an importer read from the agent's own log, as it is."""
        with self._lock:
            self._write("step", **line.to_sparse())
            if line.is_reply:
                self._replies = max(self._replies, line.step)

    def model_call(self, *, step: int | None = None, error: object = None, **details: object) -> None:
        """Record that the model was asked, and how that failed where it did (an exception, or a text).

        It belongs to the step whose reply it asks for; 0 is a call outside the conversation. The reply to one that
        worked has a `step` of its own. `details` are kept: request id, seconds, usage.
        """
        with self._lock:
            if isinstance(error, BaseException):
                self._failed_call = error
            details = {key: value for key, value in details.items() if key not in ("kind", "step", "error", "at")}
            number = self._replies + 1 if step is None else step
            self._write("model_call", step=number, error=failure_of(error), at=_now(), **details)

    def submission(
        self, *, patch: object = None, text: object = None, by: Literal["agent", "harness"] = "agent"
    ) -> None:
        """Record what is handed in as the agent's finished work. A patch of "" says that nothing was changed.

        Raises:
            UsageRefused: the patch is too long to be recorded whole, and half of one is none.
        """
        diff = text_of(patch)
        if diff is not None and len(diff) > TEXT_LIMIT:
            raise UsageRefused(
                f"Couldn't record the submission: its patch has more than {TEXT_LIMIT} characters.\n"
                "Leave what is no work out of it."
            )
        with self._lock:
            self._write("submission", patch=diff, text=text_of(text), by=by)
            self._has_patch = self._has_patch or patch is not None

    def partial_patch(self, patch: object) -> None:
        """Record unfinished work, for diagnosis: it is never handed in."""
        with self._lock:
            self._write("partial_patch", patch=as_text(patch))
            self._has_partial_patch = True

    def final_text(self, text: object) -> None:
        """Note the answer that the agent gives at its end; written with the end."""
        self._final_text = as_text(text)

    def limit(self, what: object) -> None:
        """Say that the agent was ended by a limit (`what`: steps, cost, time); the termination is then limit."""
        self.limit_met = as_text(what)

    def verification(self, name: object, passed: bool, **details: object) -> None:
        """Record what a check says about the agent's work. All passed make the trial's outcome passed.

        Raises:
            RoleRefused: the step that runs is no grader, or none runs: nothing else may score an agent's work.
        """
        with self._lock:
            step_id, role = self._running or (None, None)
            if role != "grader":
                who = f"step {step_id!r} has the role {role}" if step_id is not None else "no step of a task runs"
                raise RoleRefused(
                    f"Couldn't record the verification {as_text(name)!r}: {who}, and only a grader's counts.\n"
                    'Write it in a step whose type is a grader, or give the step step_role = "grader".'
                )
            self._write(
                "verification", name=as_text(name), passed=bool(passed), step_id=step_id, details=details or None
            )

    def add_cleanup(self, what: str, action: Callable[[], object]) -> None:
        """Have `action` called after the trial, the last one first, whatever happens; how it went is recorded.

        It may return "kept" to say that something was left in place on purpose.
        """
        self.cleanups.append((as_text(what), action))

    # What the boundary and the runner of steps call

    @contextmanager
    def task_step(self, step_id: str, step_type: str, role: StepRole) -> Iterator[None]:
        """Record that a step of a task starts, and that it is done; whoever catches a failure records it."""
        before, self._running = self._running, (step_id, role)
        try:
            self.task_step_is(step_id, step_type, role, "started")
            yield
            self.task_step_is(step_id, step_type, role, "done")
        finally:
            self._running = before

    def task_step_is(
        self, step_id: str, step_type: str, role: StepRole, status: Literal["started", "done", "failed", "skipped"]
    ) -> None:
        """Record where a step of a task stands."""
        self._write("task_step", id=step_id, type=step_type, step_role=role, status=status, at=_now())

    def failed_step(self, failed: FailedStep) -> None:
        """Record that a step of a task failed, and what was lost by it."""
        self.is_unfinished = self.is_unfinished or failed.leaves_work_unfinished
        self.task_step_is(failed.step_id, failed.type, failed.step_role, "failed")
        self._write("failed_step", **failed.to_plain())

    def record_error(self, error: BaseException, raised_by: RaisedBy = "unknown") -> None:
        """Record what ends the trial. The first one counts; the same exception again writes nothing.

        Where the failure of a model call that was recorded is in its chain, it was raised by the supplier.
        """
        if self._recorded is not None:
            return
        self._recorded = error
        # Settled before the exception is asked for anything: it may answer by another one.
        self.termination = "error" if isinstance(error, Exception) else "cancelled"
        of_the_call = any(each is self._failed_call for each in exception_chain(error))
        if of_the_call and raised_by in ("agent", "unknown"):
            raised_by = "supplier"
        self.error = named_only(error, raised_by=raised_by)
        try:
            self.error = error_of(error, raised_by=raised_by)
        finally:
            self._write("error", **self.error.to_sparse())

    def watch_work_tree(self, work_dir: Path | None, base_commit: str | None) -> None:
        """Note where the work tree stands before the agent starts: its patch is made against that.

        What is no git work tree is said when the patch is captured, not here: an agent may need none.
        """
        if work_dir is None:
            return
        self.work_dir = work_dir
        try:
            self._tree = note_work_tree(work_dir, base_commit)
        except (PatchNotCaptured, OSError) as error:
            self._no_tree = as_text(error)

    def capture_patch(self) -> None:
        """Read the agent's work from its work tree and record it: as submission, or as partial where it failed.

        A patch that the agent handed in by itself stays the submission.

        Raises:
            PatchNotCaptured: it cannot be read; that is recorded as a status of its own. Of a wrong base, the
                difference from where the work tree started is kept as a partial patch.
        """
        tree = self._tree
        try:
            if tree is None:
                raise PatchNotCaptured(f"Couldn't capture the patch: {self._no_tree}")
            patch = read_patch(tree)
        except (RegcaseError, OSError) as error:
            self._patch_capture_is("failed", as_text(error))
            if tree is not None and tree.wrong_base is not None:
                self.partial_patch(difference(tree))
            if isinstance(error, PatchNotCaptured):
                raise
            raise PatchNotCaptured(as_text(error)) from error
        if self.is_unfinished:
            if not self._has_partial_patch:
                self.partial_patch(patch)
        elif not self._has_patch:
            self.submission(patch=patch, by="harness")
        self._patch_capture_is("captured", None)

    def has_work_tree(self) -> bool:
        """Say whether there is a work tree, and nobody has tried to read its patch yet."""
        return self.work_dir is not None and self.patch_capture is None

    def cleanup_is(self, what: str, status: Literal["done", "failed", "kept"], error: str | None = None) -> None:
        """Record how putting one thing away went."""
        self._write("cleanup", what=what, status=status, error=error)

    def end(self, termination: Termination, outcome: str) -> None:
        """Record that the trial is over, and why; its outcome is a field of its own."""
        self._write(
            "end",
            termination=termination,
            outcome=outcome,
            limit=self.limit_met,
            final_text=self._final_text,
            at=_now(),
        )

    def begin(self, identity: Mapping[str, object]) -> None:
        """Write the first line."""
        self._write("trial", **{"schema": 1, **identity})

    def go_on_after(self, earlier: TrialRecord) -> None:
        """Take up what an earlier process recorded."""
        self._replies = earlier.replies
        self.error = earlier.error
        self.is_unfinished = any(each.leaves_work_unfinished for each in earlier.failed_steps)
        self.termination = "error" if earlier.error is not None else None

    def _patch_capture_is(self, status: Literal["captured", "failed"], reason: str | None) -> None:
        start = self._tree.start_commit if self._tree is not None else None
        found = PatchCapture(status=status, reason=reason, base_commit=self.config.base_commit, start_commit=start)
        self._write("patch_capture", **found.to_sparse())
        self.patch_capture = found

    def _write(self, kind: str, /, **values: object) -> None:
        kept = {key: value for key, value in values.items() if not _absent(value)}
        self._file.append({"kind": kind, **kept})


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, list) and not value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
