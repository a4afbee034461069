"""Messages of pydantic-ai, as its `ModelMessagesTypeAdapter` writes them: a list of requests and responses.

Field names after pydantic-ai's own `messages.py` of 1.x and 2.x. Must import no other importer.

What surprises: a run that ends by calling an output tool has a request last, with a fixed text; a response
without any part is never an end, the library asks again or raises; attempts that a fallback moved on from stand
inside the response that came at last; the exception that ended a run is in no message.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ChatLines, arguments_text, tool_calls_of
from pytest_regcase.importers.protocol import Peek, only_trial
from pytest_regcase.importers.reading import (
    HEAD_BYTES,
    digests_of,
    filled,
    mapping,
    moment,
    present,
    read_parsed,
    sequence,
    text,
)
from pytest_regcase.importers.steps import ends_open, failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Expectation, Termination

_CAN_SHOW: Final[tuple[Expectation, ...]] = ("no_fabricated_output",)
_FINAL: Final = "Final result processed."
"""What the library returns for the output tool whose call ended the run (`_tool_execution.py`)."""


class PydanticAi:
    """Importer of pydantic-ai messages: one trial a file."""

    name = "pydantic-ai"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is a list of objects with kind and parts."""
        if peek.kind != "file" or peek.shape.kind != "list" or "parts" not in peek.shape.keys:
            return False
        # A long first prompt hides what comes behind its text.
        return {"kind", "parts"} <= peek.whole_shape.keys and (
            b'"part_kind"' in peek.head or len(peek.head) >= HEAD_BYTES
        )

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file."""
        trial = _read(source)
        whole = "its last reply is whole, and messages hold no error and no pass or fail"
        yield only_trial(trial, why_not=None if trial.termination == "cut-off" else whole)

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the trial. Outcome is always undetermined: the format has none."""
        return _read(source)


def _read(source: Path) -> Trial:
    parsed = read_parsed(source)
    messages = [mapping(each) for each in sequence(parsed.value)]
    conversation = _Messages(messages)
    lines = conversation.chat.lines
    termination = conversation.termination
    responses = [each for each in messages if each.get("kind") == "response"]
    last_response = responses[-1] if responses else {}
    run_id = next((found for each in reversed(messages) if (found := filled(each.get("run_id")))), None)
    due = termination == "cut-off" and reply_was_due(lines)
    return Trial(
        format=PydanticAi.name,
        harness="pydantic-ai",
        run_id=run_id,
        event_id=run_id or digest_of(parsed.value),
        event_id_from="recorded" if run_id else "digest",
        model=filled(last_response.get("model_name")),
        started_at=moment(messages[0].get("timestamp")) if messages else None,
        task_text=next(
            (line.text for line in lines if line.role == "user" and line.step == 0 and line.text), None
        ),
        steps=tuple(lines),
        failing_step=failing_step(lines, next_reply_failed=due),
        termination=termination,
        conditions=present({name: filled(last_response.get(name)) for name in ("provider_name", "provider_url")}),
        model_requests=conversation.requests or None,
        can_show=_CAN_SHOW,
        source_digests=digests_of(source),
        missing=(*parsed.notes, *conversation.missing),
    )


class _Messages:
    """The lines of a list of messages, and what its last one shows of the end."""

    def __init__(self, messages: list[Mapping[str, Any]]) -> None:
        self.chat = ChatLines()
        self.requests = 0
        """Model calls that the messages show: answered ones, and attempts that failed before an answer came."""
        self._left_out: Counter[str] = Counter()
        self._instructions: str | None = None
        self._ended_by_output = False
        self._nothing_said = False
        for index, message in enumerate(messages):
            kind, origin = message.get("kind"), f"[{index}]"
            self._ended_by_output = self._nothing_said = False
            if kind == "response":
                self._response(message, origin)
            elif kind == "request":
                self._request(message, origin)
            else:
                self._left_out["of an unknown message"] += 1

    @property
    def termination(self) -> Termination | None:
        """`finished` where an output tool ended the run, `cut-off` where the messages stop in the middle."""
        if self._ended_by_output:
            return "finished"
        return "cut-off" if self._nothing_said or ends_open(self.chat.lines) else None

    @property
    def missing(self) -> list[str]:
        """Sentences: what was there and is not in the lines, and what no message holds."""
        found = [f"left out: parts {kind} ({count})" for kind, count in sorted(self._left_out.items())]
        if not self._ended_by_output:
            found.append("how it ended: messages hold no exception that ended the run")
        return [*self.chat.missing, *found]

    def _request(self, message: Mapping[str, Any], origin: str) -> None:
        instructions = filled(message.get("instructions"))
        if instructions is not None and instructions != self._instructions:
            self._instructions = instructions
            self.chat.said(f"{origin}.instructions", "system", instructions)
        for number, part in enumerate(map(mapping, sequence(message.get("parts")))):
            place = f"{origin}.parts[{number}]"
            kind = filled(part.get("part_kind")) or "unknown"
            content = part.get("content")
            at = moment(part.get("timestamp"))
            facts: dict[str, Any] = {} if at is None else {"at": at}
            call_id = filled(part.get("tool_call_id"))
            if kind == "system-prompt":
                self.chat.said(place, "system", text(content), **facts)
            elif kind == "user-prompt":
                self.chat.said(place, "user", self._prompt(content), **facts)
            elif kind == "tool-return" or (kind == "retry-prompt" and filled(part.get("tool_name"))):
                self._ended_by_output = self._ended_by_output or (kind == "tool-return" and content == _FINAL)
                self.chat.said(place, "tool", arguments_text(content), call_id=call_id, **facts)
            elif kind in ("retry-prompt", "retry-feedback"):
                self.chat.said(place, "user", arguments_text(content), **facts)
            else:
                self._left_out[kind] += 1

    def _prompt(self, content: Any) -> str | None:
        """Return the text of a prompt: a text, or a list of texts, text contents and files."""
        if not isinstance(content, list):
            return text(content)
        texts = []
        for each in content:
            said = each if isinstance(each, str) else text(mapping(each).get("content"))
            kind = "text" if isinstance(each, str) else filled(mapping(each).get("kind")) or "unknown"
            if said is not None and kind in ("text", "text-content", "structured-content"):
                texts.append(said)
            else:
                self._left_out[kind] += 1
        return "\n".join(texts) if texts else None

    def _response(self, message: Mapping[str, Any], origin: str) -> None:
        for number, attempt in enumerate(map(mapping, sequence(message.get("failed_attempts")))):
            self.requests += 1
            failure = filled(attempt.get("error")) or filled(attempt.get("outcome")) or "no reply recorded"
            model = filled(attempt.get("model_name"))
            self.chat.failed_call(f"{origin}.failed_attempts[{number}]", failure, model=model)
        self.requests += 1
        texts: list[str] = []
        calls: list[Any] = []
        parts = sequence(message.get("parts"))
        for part in map(mapping, parts):
            kind = filled(part.get("part_kind")) or "unknown"
            if kind == "text":
                texts.append(text(part.get("content")) or "")
            elif kind == "tool-call":
                call = (part.get("tool_call_id"), part.get("tool_name"), part.get("args"))
                calls.append(list(call))
            else:
                self._left_out[kind] += 1
        self._nothing_said = not parts
        said = "\n\n".join(texts) if texts or not calls else None
        at = moment(message.get("timestamp"))
        facts: dict[str, Any] = {"model": filled(message.get("model_name")), **({} if at is None else {"at": at})}
        state = filled(message.get("state"))
        if state not in (None, "complete"):
            self.chat.failed_call(origin, state or "", said, **facts)
            return
        usage = {name: value for name, value in mapping(message.get("usage")).items() if value}
        self.chat.reply(
            origin,
            said,
            tool_calls_of(calls),
            finish=filled(message.get("finish_reason")),
            usage=present(usage) or None,
            response_id=filled(message.get("provider_response_id")),
            **facts,
        )
