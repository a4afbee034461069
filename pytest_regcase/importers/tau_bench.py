"""tau-bench results: one JSON list of records `{task_id, reward, info, traj, trial}`, written again after each
trial.

Field names after the benchmark's own `run.py`, `envs/base.py` and `agents/tool_calling_agent.py`. Must import
no other importer.

What surprises: a trial that raised is written with reward 0.0, an empty `traj` and `info {error, traceback}`,
so it looks like a wrong answer and was never graded; `info.reward_info` is there only where the conversation
came to its end, so without it the agent's loop ran out of steps; a task's instruction is what the simulated
user knows and the agent must not see.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ChatLines
from pytest_regcase.importers.last_document import LastDocument
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    Parsed,
    bare,
    digests_of,
    exception_chain,
    filled,
    mapping,
    refused,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import ErrorLink, Trial, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, Outcome, Termination

_CAN_SHOW: Final[tuple[Expectation, ...]] = ("log_failure", "no_fabricated_output", "mark_failure")
"""No work tree and no patch: the work is in a simulated database. After an exception not even the conversation."""
_STOP: Final = "###STOP###"
_NEAR: Final = 1e-6
"""What tau-bench itself allows a reward of 1 to be off (`run.py`, `is_successful`)."""


class TauBench:
    """Importer of tau-bench results: one trial a record."""

    name = "tau-bench"

    def __init__(self) -> None:
        self._document = LastDocument()

    def handles(self, peek: Peek) -> bool:
        """Say whether it is a list of objects with task_id, reward and info or traj."""
        keys = peek.shape.keys
        return (
            peek.kind == "file"
            and peek.shape.kind == "list"
            and {"task_id", "reward"} <= keys
            and not keys.isdisjoint(("info", "traj"))
        )

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield a reference to each record of the list."""
        records, _ = _records(self._document.read(source))
        for record in records:
            why_not, refusal = None, None
            if record.outcome == "passed":
                why_not, refusal = f"its reward is {record.reward}: it passed", "passed"
            elif record.error is None and record.outcome == "undetermined" and record.termination != "limit":
                why_not, refusal = "it holds no reward and no error", "no-sign-of-failure"
            yield TrialRef(
                key=record.key,
                task_id=record.task_id,
                attempt=record.attempt,
                termination=record.termination,
                outcome=record.outcome,
                error_type=record.error.type if record.error is not None else None,
                failed=refusal is None,
                why_not=why_not,
                refusal=refusal,
                sample=record.task_id,
            )

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one record."""
        records, notes = _records(self._document.read(source))
        record = next((each for each in records if each.key == ref.key), None)
        if record is None:
            raise refused("no-such-trial", source, f"no record in it is {ref.key}", "List it again.")
        return record.trial(source, notes)


def _records(parsed: Parsed) -> tuple[list["_Record"], tuple[str, ...]]:
    seen: Counter[str] = Counter()
    found: list[_Record] = []
    for index, each in enumerate(sequence(parsed.value)):
        record = _Record(mapping(each), index)
        seen[record.key] += 1
        if seen[record.key] > 1:  # a list put together of several runs
            record = _Record(mapping(each), index, seen[record.key])
        found.append(record)
    return found, parsed.notes


@dataclass(frozen=True)
class _Record:
    """One record of the list, and what it says."""

    content: Mapping[str, Any]
    index: int
    copy: int = 1
    """Counts records with the same task and trial."""

    @cached_property
    def task_id(self) -> str | None:
        given = self.content.get("task_id")
        number = whole(given)
        return str(number) if number is not None else filled(given)

    @cached_property
    def attempt(self) -> int | None:
        """As recorded: tau-bench counts trials from 0."""
        return whole(self.content.get("trial"))

    @property
    def key(self) -> str:
        known = self.task_id if self.task_id is not None else f"record-{self.index}"
        trial = "" if self.attempt is None else f"#{self.attempt}"
        return f"{known}{trial}" + (f"#copy-{self.copy}" if self.copy > 1 else "")

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return mapping(self.content.get("info"))

    @cached_property
    def messages(self) -> list[Any]:
        return sequence(self.content.get("traj"))

    @cached_property
    def reward(self) -> float | None:
        given = self.content.get("reward")
        return given if isinstance(given, int | float) and not isinstance(given, bool) else None

    @cached_property
    def outcome(self) -> Outcome:
        """The reward's word; a trial that raised was never graded, whatever reward stands there."""
        if self.reward is None or self.error is not None:
            return "undetermined"
        return "passed" if abs(self.reward - 1) <= _NEAR else "failed"

    @cached_property
    def termination(self) -> Termination | None:
        if self.error is not None:
            return "error"
        last = mapping(self.messages[-1]) if self.messages else {}
        said_stop = last.get("role") == "user" and _STOP in (text(last.get("content")) or "")
        if said_stop or mapping(self.info.get("reward_info")):
            return "finished"
        return "limit" if self.messages and "source" in self.info else None

    @cached_property
    def error(self) -> TrialError | None:
        message, traceback = text(self.info.get("error")), filled(self.info.get("traceback"))
        if message is None and traceback is None:
            return None
        chain = exception_chain(traceback)
        return TrialError(
            type=bare(chain[0][0]) if chain else None,
            message=message if message is not None else (chain[0][1] if chain else None),
            traceback=traceback,
            chain=tuple(ErrorLink(type=kind, message=words) for kind, words in chain),
        )

    def trial(self, source: Path, notes: tuple[str, ...]) -> Trial:
        chat = ChatLines().take_all(self.messages, f"[{self.index}].traj")
        missing = [*notes, *chat.missing, "model and times: a tau-bench record holds neither"]
        if self.error is not None and not self.messages:
            missing.append("conversation: tau-bench writes none when a trial raised")
        labels = [] if self.reward is None else [f"tau-bench:reward:{self.reward}"]
        source_of_end = filled(self.info.get("source"))
        if source_of_end is not None:
            labels.append(f"tau-bench:source:{source_of_end}")
        return Trial(
            format=TauBench.name,
            harness="tau-bench",
            task_id=self.task_id,
            attempt=self.attempt,
            event_id=digest_of([self.content, self.copy] if self.copy > 1 else self.content),
            event_id_from="digest",
            task_text=next(
                (line.text for line in chat.lines if line.role == "user" and line.step == 0 and line.text), None
            ),
            steps=tuple(chat.lines),
            failing_step=failing_step(
                chat.lines, next_reply_failed=self.error is not None and reply_was_due(chat.lines)
            ),
            termination=self.termination,
            outcome=self.outcome,
            outcome_from="log" if self.outcome != "undetermined" else None,
            error=self.error,
            labels=tuple(labels),
            can_show=_CAN_SHOW,
            source_digests=digests_of(source),
            missing=tuple(missing),
        )
