"""Events of OpenHands V0 (actions and observations) as transcript lines, and how they say that the run ended.

Knows `openhands/events` of V0: newer events with `source`, `args` and `tool_call_metadata`, and the bare ones
of 2024, with their fields beside `action` or `observation`. Must import no importer.

What surprises: one reply may stand in several actions, each with the whole model response; the bare actions
keep no reply at all, only what was made of it; a reply whose call could not be parsed leaves an error and
nothing else; ids have gaps, since events that belong to no conversation are left out when a history is saved.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ChatLines, tool_calls_of
from pytest_regcase.importers.reading import filled, mapping, moment, present, sequence, text
from pytest_regcase.importers.steps import reply_was_due
from pytest_regcase.records.trial import ToolCall, TrialError
from pytest_regcase.records.words import RaisedBy, Termination

_NO_TALK: Final = frozenset(
    {
        "recall",
        "change_agent_state",
        "agent_state_changed",
        "condensation",
        "condensation_request",
        "null",
        "pause",
        "resume",
        "stop",
    }
)
"""Kinds of actions and observations that the model neither made nor was shown as they stand."""
_STATES: Final[Mapping[str, Termination]] = {
    "finished": "finished",
    "error": "error",
    "stopped": "cancelled",
    "running": "cut-off",
    "loading": "cut-off",
}
_OWN_FIELDS: Final = frozenset(
    {"action", "thought", "id", "timestamp", "source", "message", "cause", "timeout", "args", "tool_call_metadata"}
)
_LIMIT: Final = re.compile(r"reached maximum (?:iteration|budget)|^Timeout after \d", re.IGNORECASE)
_RETRIES: Final = re.compile(r"^Maximum retries \(\d+\) reached: ")
_TYPE: Final = re.compile(r"^([A-Za-z_][A-Za-z0-9_.]*(?:Error|Exception|Timeout|Exceeded|Interrupt|Exit)): ")


class History:
    """The lines of one conversation, and what its last events tell of its end."""

    def __init__(self, events: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        self.chat = ChatLines()
        self.final_text: str | None = None
        self.agent_state: str | None = None
        """The state that the controller last announced, such as ``finished`` or ``error``."""
        self._reason: str | None = None
        self.finished = False
        """The last thing that the agent did was its `finish`."""
        self.model: str | None = None
        self._tools: tuple[str, ...] = ()
        self._responses: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._put_together = 0
        self._orphans = 0
        self._zoneless = False
        for origin, event in events:
            self._take(event, origin)

    @property
    def missing(self) -> list[str]:
        """Sentences: what was there and is not in the lines."""
        found = list(self.chat.missing)
        for kind, count in sorted(self._left_out.items()):
            found.append(f"left out, as no part of the conversation: events {kind} ({count})")
        if self._put_together:
            found.append(
                f"replies put together of thought and action ({self._put_together}): what the model wrote itself"
                " is not recorded, and their calls have no id"
            )
        if self._orphans:
            found.append(
                f"errors without a call of their own ({self._orphans}): a reply that could not be parsed is"
                " not recorded, and not counted"
            )
        if self._zoneless:
            found.append("times: they are recorded without a zone, so they name no point in time")
        return found

    @property
    def error(self) -> TrialError | None:
        """What the controller gave as the reason of its state `error`."""
        if self.agent_state != "error":
            return None
        return error_of(self._reason)[0] if self._reason is not None else TrialError()

    @property
    def termination(self) -> Termination | None:
        """Why it stopped, as far as the events say; `cut-off` also where they end while a reply was due."""
        if self.agent_state == "error" and self._reason is not None:
            return error_of(self._reason)[1]
        known = _STATES.get(self.agent_state or "")
        if known in ("error", "cancelled"):
            return known
        if self.finished or known == "finished":
            return "finished"
        return "cut-off" if known is not None or reply_was_due(self.chat.lines) else None

    @property
    def task_text(self) -> str | None:
        """What the user said first."""
        return next(
            (line.text for line in self.chat.lines if line.role == "user" and line.step == 0 and line.text), None
        )

    def _take(self, event: Mapping[str, Any], origin: str) -> None:
        action, observation = filled(event.get("action")), filled(event.get("observation"))
        at = moment(event.get("timestamp"))
        self._zoneless = self._zoneless or (at is None and filled(event.get("timestamp")) is not None)
        facts = {} if at is None else {"at": at}
        kind = action or observation or "unknown"
        if observation == "agent_state_changed":
            extras = mapping(event.get("extras"))
            self.agent_state = filled(extras.get("agent_state")) or self.agent_state
            self._reason = filled(extras.get("reason"))
        if kind in _NO_TALK or (action is None and observation is None):
            self._left_out[kind] += 1
        elif action is not None:
            self._action(event, action, origin, facts)
        else:
            self._observation(event, kind, origin, facts)

    def _action(self, event: Mapping[str, Any], action: str, origin: str, facts: Mapping[str, Any]) -> None:
        # Bare events have their arguments beside `action`.
        args = mapping(event.get("args")) if "args" in event else event
        source = filled(event.get("source"))
        said = text(args.get("content"))
        if action == "system":
            self._tools = tuple(
                name
                for tool in sequence(args.get("tools"))
                if (name := filled(mapping(mapping(tool).get("function")).get("name")))
            )
            self.chat.said(origin, "system", said, **facts)
            return
        if action == "message" and (source == "user" or (source is None and not self.chat.replies)):
            self.finished = False
            self.chat.said(origin, "user", said, **facts)
            return
        if source == "user":  # a person ran a command in the agent's place
            self._left_out[f"user's {action}"] += 1
            return
        self.finished = action == "finish"
        if self.finished:
            outputs = mapping(args.get("outputs"))
            self.final_text = filled(args.get("final_thought")) or filled(outputs.get("content"))
            self.final_text = self.final_text or filled(args.get("thought"))
        self._reply(event, action, args, origin, facts)

    def _reply(
        self,
        event: Mapping[str, Any],
        action: str,
        args: Mapping[str, Any],
        origin: str,
        facts: Mapping[str, Any],
    ) -> None:
        known = {**facts, "offered_tools": self._tools}
        response = mapping(mapping(event.get("tool_call_metadata")).get("model_response"))
        choice = mapping(next(iter(sequence(response.get("choices"))), None))
        message = mapping(choice.get("message"))
        if message:
            response_id = filled(response.get("id"))
            if response_id is not None and response_id in self._responses:
                return
            self._responses.add(response_id or "")
            self.model = filled(response.get("model")) or self.model
            self.chat.reply(
                origin,
                self.chat.content(message.get("content")).text,
                tool_calls_of(message.get("tool_calls")),
                finish=filled(choice.get("finish_reason")),
                usage=present(dict(mapping(response.get("usage")))) or None,
                model=filled(response.get("model")),
                response_id=response_id,
                **known,
            )
        elif action == "message":
            self.chat.reply(origin, text(args.get("content")), **known)
        else:
            self._put_together += 1
            given = {name: value for name, value in args.items() if name not in _OWN_FIELDS}
            call = ToolCall(name=action, arguments=json.dumps(given, ensure_ascii=False))
            self.chat.reply(origin, text(args.get("thought")), (call,), **known)

    def _observation(self, event: Mapping[str, Any], kind: str, origin: str, facts: Mapping[str, Any]) -> None:
        call_id = filled(mapping(event.get("tool_call_metadata")).get("tool_call_id"))
        said = text(event.get("content"))
        if kind == "error" and call_id is None:
            self._orphans += 1
            self.chat.said(origin, "user", said, **facts)
        else:
            self.chat.said(origin, "tool", said, call_id=call_id, **facts)


def flat(history: Any, origin: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield (origin, event) of a history: a list of events, or of [action, observation] pairs as until 2024."""
    for index, each in enumerate(sequence(history)):
        if isinstance(each, list):
            for number, part in enumerate(each):
                if isinstance(part, dict) and part:
                    yield f"{origin}[{index}][{number}]", part
        else:
            yield f"{origin}[{index}]", mapping(each)


def error_of(message: str) -> tuple[TrialError, Termination]:
    """Read an error text as OpenHands writes it, ``Type: words``, and say whether it is one of its own limits."""
    named = _TYPE.match(_RETRIES.sub("", message))
    kind = named[1].rpartition(".")[2] if named is not None else None
    termination: Termination = "limit" if _LIMIT.search(message) else "error"
    raised_by: RaisedBy = "unknown"
    if termination == "limit":
        raised_by = "harness"
    elif kind is not None and kind.startswith("AgentRuntime"):
        raised_by = "environment"
    elif "litellm." in message:
        raised_by = "supplier"
    elif kind == "AgentStuckInLoopError":
        raised_by = "agent"
    return TrialError(type=kind, message=message, raised_by=raised_by), termination
