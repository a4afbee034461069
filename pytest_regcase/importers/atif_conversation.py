"""The conversation of an ATIF trajectory (Agent Trajectory Interchange Format, 1.0 to 1.8) and its continuations.

Field names and rules after the record classes of harbor 0.26.0 (`models/trajectories`). Must import no importer.

What surprises: a continuation counts its steps from 1 again and begins with copies of earlier ones
(`is_copied_context`); an agent step with `llm_call_count` 0 is no model call; results without a call id were
handed to the model as a user's message; nothing in the format says how a run ended, or that a call failed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ChatLines, Role, arguments_text
from pytest_regcase.importers.folder_files import beside
from pytest_regcase.importers.reading import (
    filled,
    mapping,
    moment,
    present,
    read_parsed,
    refused,
    sequence,
    text,
    whole,
)
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import ToolCall, TranscriptLine

KNOWN_MINOR: Final = 8
_VERSION: Final = re.compile(r"ATIF-v1\.(\d{1,4})")
_BULK: Final = ("prompt_token_ids", "completion_token_ids", "logprobs")
"""Metrics with an entry a token: no part of what a case needs."""


@dataclass(frozen=True)
class AtifDocument:
    """One file of a trajectory, parsed."""

    path: Path
    value: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def read_documents(path: Path) -> tuple[AtifDocument, ...]:
    """Return the document and, in order, those beside it that it says continue it.

    A continuation that is not there, or cannot be used, is noted with the document that names it.

    Raises:
        ImportRefused: `path` itself is too large, no JSON, no trajectory, or of another major version.
    """
    found = [_document(path)]
    while (name := filled(found[-1].value.get("continued_trajectory_ref"))) is not None:
        last = found[-1]
        following = beside(last.path.parent, name)
        if following is not None and following not in [each.path for each in found]:
            found.append(_document(following))
            continue
        why = "no such file lies beside the trajectory" if following is None else "it was read already"
        found[-1] = AtifDocument(last.path, last.value, (*last.notes, f"the continuation {name!r}: {why}"))
        break
    return tuple(found)


def _document(path: Path) -> AtifDocument:
    parsed = read_parsed(path)
    document = mapping(parsed.value)
    version = filled(document.get("schema_version")) or ""
    matched = _VERSION.fullmatch(version)
    if matched is None:
        raise refused(
            "unknown-version",
            path,
            f"its schema_version is {version!r}, and we read ATIF-v1.0 to ATIF-v1.{KNOWN_MINOR}",
            "Upgrade pytest-regcase, or have the trajectory written in a version 1.",
        )
    if not isinstance(document.get("steps"), list):
        raise refused("malformed", path, "it has no list of steps", "Check what wrote the file.")
    newer = int(matched[1]) > KNOWN_MINOR
    note = (f"what {version} has and ATIF-v1.{KNOWN_MINOR} has not is not looked at",) if newer else ()
    return AtifDocument(path, document, (*parsed.notes, *note))


class AtifConversation:
    """The lines of a trajectory, and what its documents say of the run as a whole."""

    def __init__(self, documents: Sequence[AtifDocument]) -> None:
        self._chat = ChatLines()
        self._copied = self._dispatched = self._reasoned = self._delegated = 0
        self._calls_counted: int | None = 0
        self._told: set[str | None] = set()
        first = documents[0].value
        agent = mapping(first.get("agent"))
        self.agent = filled(agent.get("name"))
        self.version = filled(agent.get("version"))
        self.model = filled(agent.get("model_name"))
        self.session_id = filled(first.get("session_id"))
        self.trajectory_id = filled(first.get("trajectory_id"))
        self.agent_extra: dict[str, Any] = present(dict(mapping(agent.get("extra"))))
        self._tools = tuple(
            name
            for tool in sequence(agent.get("tool_definitions"))
            if (name := filled(mapping(mapping(tool).get("function")).get("name")))
        )
        for number, document in enumerate(documents):
            prefix = "steps" if number == 0 else f"{document.path.name}:steps"
            for index, step in enumerate(map(mapping, sequence(document.value.get("steps")))):
                self._step(step, f"{prefix}[{index}]")
        embedded = sum(len(sequence(each.value.get("subagent_trajectories"))) for each in documents)
        self._delegated = max(self._delegated, embedded)
        self._notes = tuple(note for each in documents for note in each.notes)

    @property
    def lines(self) -> list[TranscriptLine]:
        """The lines, in order."""
        return self._chat.lines

    @property
    def last_reply_failed(self) -> bool:
        """Say whether the last thing on record is a reply that was of no use."""
        return bool(self.lines) and self.lines[-1].role == "assistant" and not self.lines[-1].is_reply

    @property
    def model_requests(self) -> int | None:
        """How many model calls the steps stand for; None where the producer did not count them."""
        return self._calls_counted or None

    @property
    def task_text(self) -> str | None:
        """What the user said first."""
        return next((line.text for line in self.lines if line.role == "user" and line.text), None)

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences: what is there and not in the lines."""
        counted = (
            (self._copied, "reply is a copy", "replies are copies", "of earlier ones for context: left out"),
            (self._dispatched, "agent step was", "agent steps were", "no model call: left out but for the result"),
            (self._reasoned, "reply has", "replies have", "reasoning that is left out"),
            (self._delegated, "conversation", "conversations", "of sub-agents left out"),
        )
        return (
            *self._notes,
            *self._chat.missing,
            *(f"{how_many(count, one, many)} {what}" for count, one, many, what in counted if count),
        )

    def _step(self, step: Mapping[str, Any], origin: str) -> None:
        is_copy = step.get("is_copied_context") is True
        source = step.get("source")
        at = moment(step.get("timestamp"))
        if source in ("system", "user"):
            said = self._chat.content(step.get("message")).text
            # Of what a continuation copies, only what its beginning does not hold was not told yet.
            if not is_copy or said not in self._told:
                self._chat.said(origin, source, said, at=at)
                self._told.add(said)
            self._results(step, origin)
        elif source == "agent" and is_copy:
            self._copied += 1
        elif source == "agent" and step.get("llm_call_count") == 0:
            self._dispatched += 1
            self._results(step, origin)
        elif source == "agent":
            self._agent_step(step, origin, at)

    def _agent_step(self, step: Mapping[str, Any], origin: str, at: Any) -> None:
        count = whole(step.get("llm_call_count"))
        if count is None or self._calls_counted is None:
            self._calls_counted = None
        else:
            self._calls_counted += count
        said = self._chat.content(step.get("message")).text
        calls = tuple(_calls(step))
        facts = {"model": filled(step.get("model_name")) or self.model, "at": at, "offered_tools": self._tools}
        complaint = self._complaint(step) if not calls and not (said or "").strip() else None
        if complaint is not None:
            self._chat.failed_call(origin, complaint, said, **facts)
            return
        if step.get("reasoning_content"):
            self._reasoned += 1
        usage = {name: each for name, each in mapping(step.get("metrics")).items() if name not in _BULK}
        self._chat.reply(origin, said, calls, usage=present(usage) or None, **facts)
        self._results(step, origin)

    def _complaint(self, step: Mapping[str, Any]) -> str | None:
        """Return what the harness answered to a reply that holds nothing: by its own record it was of no use."""
        if step.get("reasoning_content"):
            return None
        results = [mapping(each) for each in sequence(mapping(step.get("observation")).get("results"))]
        said = [self._chat.content(each.get("content")).text for each in results]
        return "\n".join(filter(None, said)) or None

    def _results(self, step: Mapping[str, Any], origin: str) -> None:
        for index, result in enumerate(sequence(mapping(step.get("observation")).get("results"))):
            result = mapping(result)
            self._delegated += len(sequence(result.get("subagent_trajectory_ref")))
            said = self._chat.content(result.get("content")).text
            if said is None:
                continue
            call_id = filled(result.get("source_call_id"))
            role: Role = "user" if call_id is None else "tool"
            self._chat.said(f"{origin}.observation.results[{index}]", role, said, call_id=call_id)


def _calls(step: Mapping[str, Any]) -> list[ToolCall]:
    return [
        ToolCall(id=filled(call.get("tool_call_id")), name=name, arguments=arguments_text(call.get("arguments")))
        for call in map(mapping, sequence(step.get("tool_calls")))
        if (name := text(call.get("function_name")))
    ]
