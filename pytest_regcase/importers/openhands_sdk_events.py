"""Events of OpenHands V1 (software-agent-sdk) as transcript lines, and how they say that the run ended.

Knows the event classes of openhands-sdk 1.x by their `kind`. Must import no importer.

What surprises: calls made in one reply are events of their own that share `llm_response_id`, and only the first
holds the text; a run that ended by a limit of its own is in the state `error` as well; a `running` that nothing
followed is a run that was cut off; an interrupt makes the state `paused`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ChatLines, tool_calls_of
from pytest_regcase.importers.reading import filled, mapping, moment, sequence, text
from pytest_regcase.importers.steps import reply_was_due
from pytest_regcase.records.trial import TrialError
from pytest_regcase.records.words import RaisedBy, Termination

_LIMITS: Final = frozenset({"MaxIterationsReached", "MaxBudgetReached"})
_STATES: Final[Mapping[str, Termination]] = {
    "finished": "finished",
    "error": "error",
    "stuck": "limit",
    "running": "cut-off",
    "paused": "cancelled",
    "deleting": "cancelled",
}
_STATE_EVENT: Final = "ConversationStateUpdateEvent"


class SdkConversation:
    """The lines of one conversation, and what its events tell of its end."""

    def __init__(self, events: Iterable[tuple[str, Mapping[str, Any]]], *, status: str | None = None) -> None:
        """`status` is the execution status as it is kept beside the events, where it is."""
        self.chat = ChatLines()
        self.error: TrialError | None = None
        self.final_text: str | None = None
        self.model: str | None = None
        self.status = status
        """The last execution status that is recorded."""
        self.finished = False
        """The last thing that the agent did was its `finish`."""
        self._tools: tuple[str, ...] = ()
        self._calls: dict[str, list[Any]] = {}
        """Calls of each reply, by the id of the response that they came in."""
        self._left_out: Counter[str] = Counter()
        self._zoneless = False
        known = list(events)
        for _, event in known:
            if event.get("kind") == "ActionEvent" and (response := filled(event.get("llm_response_id"))):
                self._calls.setdefault(response, []).append(event.get("tool_call"))
        for origin, event in known:
            self._take(event, origin)

    @property
    def termination(self) -> Termination | None:
        """Why it stopped, as far as the events or the kept status say."""
        if self.error is not None:
            return "limit" if self.error.type in _LIMITS else "error"
        known = _STATES.get(self.status or "")
        if known in ("finished", "error", "limit", "cancelled"):
            return known
        if self.finished:
            return "finished"
        return "cut-off" if known is not None or reply_was_due(self.chat.lines) else None

    @property
    def task_text(self) -> str | None:
        """What the user said first."""
        return next(
            (line.text for line in self.chat.lines if line.role == "user" and line.step == 0 and line.text), None
        )

    @property
    def missing(self) -> list[str]:
        """Sentences: what was there and is not in the lines."""
        found = list(self.chat.missing)
        for kind, count in sorted(self._left_out.items()):
            found.append(f"left out, as no part of the conversation: events {kind} ({count})")
        if self._zoneless:
            found.append("times: they are recorded without a zone, so they name no point in time")
        return found

    def _take(self, event: Mapping[str, Any], origin: str) -> None:
        kind = filled(event.get("kind")) or "unknown"
        at = moment(event.get("timestamp"))
        self._zoneless = self._zoneless or (at is None and filled(event.get("timestamp")) is not None)
        facts: dict[str, Any] = {} if at is None else {"at": at}
        call_id = filled(event.get("tool_call_id"))
        if kind == "SystemPromptEvent":
            self._tools = tuple(
                name
                for tool in sequence(event.get("tools"))
                if (name := filled(mapping(tool).get("name")) or filled(mapping(tool).get("title")))
            )
            self.chat.said(origin, "system", text(mapping(event.get("system_prompt")).get("text")), **facts)
        elif kind == "MessageEvent":
            self._message(event, origin, facts)
        elif kind == "ActionEvent":
            self._action(event, origin, facts)
        elif kind == "ObservationEvent":
            said = self.chat.content(mapping(event.get("observation")).get("content")).text
            self.chat.said(origin, "tool", said, call_id=call_id, **facts)
        elif kind == "AgentErrorEvent":
            self.chat.said(origin, "tool", text(event.get("error")), call_id=call_id, **facts)
        elif kind == "UserRejectObservation":
            self.chat.said(origin, "tool", text(event.get("rejection_reason")), call_id=call_id, **facts)
        elif kind == "ConversationErrorEvent":
            self._error(event)
        elif kind == _STATE_EVENT:
            self._state(event)
        else:
            self._left_out[kind] += 1

    def _message(self, event: Mapping[str, Any], origin: str, facts: Mapping[str, Any]) -> None:
        message = mapping(event.get("llm_message"))
        said = self.chat.content(message.get("content")).text
        if event.get("source") == "agent" and message.get("role") == "assistant":
            self.finished = False
            calls = tool_calls_of(message.get("tool_calls"))
            self.chat.reply(origin, said, calls, offered_tools=self._tools, **facts)
        else:
            self.finished = False
            self.chat.said(origin, "user", said, **facts)

    def _action(self, event: Mapping[str, Any], origin: str, facts: Mapping[str, Any]) -> None:
        action = mapping(event.get("action"))
        self.finished = action.get("kind") == "FinishAction" or event.get("tool_name") == "finish"
        if self.finished:
            self.final_text = filled(action.get("message"))
        response = filled(event.get("llm_response_id"))
        calls = [event.get("tool_call")] if response is None else self._calls.pop(response, None)
        if calls is not None:  # else they stand in the reply already
            said = self.chat.content(event.get("thought")).text or None
            known = {"offered_tools": self._tools, "response_id": response, **facts}
            self.chat.reply(origin, said, tool_calls_of(calls), **known)

    def _error(self, event: Mapping[str, Any]) -> None:
        code = filled(event.get("code"))
        raised_by: RaisedBy = "unknown"
        if code in _LIMITS:
            raised_by = "harness"
        elif code is not None and code.startswith("LLM"):  # the SDK's own errors of a model call
            raised_by = "supplier"
        self.error = TrialError(type=code, message=text(event.get("detail")), raised_by=raised_by)

    def _state(self, event: Mapping[str, Any]) -> None:
        key, value = event.get("key"), event.get("value")
        if key == "execution_status":
            self.status = filled(value) or self.status
        elif key == "full_state":
            self.status = filled(mapping(value).get("execution_status")) or self.status
            self.model = (
                filled(mapping(mapping(mapping(value).get("agent")).get("llm")).get("model")) or self.model
            )
        elif key == "stats":
            metrics = mapping(mapping(mapping(value).get("usage_to_metrics")).get("default"))
            self.model = filled(metrics.get("model_name")) or self.model
        if self.status == "running":
            self.error = None  # a run that went on after an error
