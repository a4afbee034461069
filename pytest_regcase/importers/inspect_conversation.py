"""The main conversation of an Inspect sample as transcript lines.

Knows events, messages, message pools and attachments of inspect_ai 0.3.41 to 0.3.285. Must import no importer.

What surprises: a failed model call carries an output all the same (empty content, stop reason "stop"); messages
may be pooled (`input_refs` into `events_data`) and long texts stored once (`attachment://`, before that `tc://`);
the model calls of a scorer or a sub-agent stand in the same list of events.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ROLES, ChatLines, Role
from pytest_regcase.importers.reading import filled, mapping, moment, present, sequence, text, whole
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import ToolCall

CANCEL_WORDS: Final = ("Cancelled by operator", "Cancelled by limit", "Cancelled by system")
"""What inspect writes into a model event's error when it was cancelled, not failed (`event/_model.py`)."""
_NO_REPLY_RECORDED: Final = "no reply recorded"
_ATTACHED: Final = ("attachment://", "tc://")


class SampleConversation:
    """The lines, how many requests the log shows, and what the last model call came to."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self._chat = ChatLines()
        self.lines = self._chat.lines
        self.missing: list[str] = []
        self.requests: int | None = None
        self.last_call_error: str | None = None
        """Error text of the last model call in the main conversation, if that call failed."""
        self.last_call_chain: str | None = None
        """Its traceback."""
        transcript = mapping(sample.get("transcript"))
        self._attachments = {**mapping(transcript.get("content")), **mapping(sample.get("attachments"))}
        self._pool = sequence(mapping(sample.get("events_data")).get("messages"))
        self._messages = [mapping(each) for each in sequence(sample.get("messages"))]
        self._said: Counter[str] = Counter()
        self._given_answers = 0
        self._parts_left_out: Counter[str] = Counter()
        events = [mapping(each) for each in sequence(sample.get("events")) or sequence(transcript.get("events"))]
        self._raw_results = {
            call_id: result
            for event in events
            if event.get("event") == "tool"
            and (call_id := filled(event.get("id")))
            and (result := text(event.get("result"))) is not None
        }
        calls = self._main_calls(events)
        if calls:
            for index, event in calls:
                self._call(index, event)
            self.requests = sum(1 + max(whole(event.get("retries")) or 0, 0) for _, event in calls)
            self._said_by_others(self._messages, "messages")
        else:
            self._from_messages()
        self._say_what_is_left_out()

    def resolved(self, value: str) -> str:
        """Return `value`, or the text that it refers to."""
        for prefix in _ATTACHED:
            if value.startswith(prefix):
                found = self._attachments.get(value.removeprefix(prefix))
                return found if isinstance(found, str) else value
        return value

    def content(self, value: Any) -> str | None:
        """Return the text of a message's content; parts that are no text are left out and counted."""
        if isinstance(value, str):
            return self.resolved(value)
        if not isinstance(value, list):
            return None
        texts = []
        for part in map(mapping, value):
            found = text(part.get("text")) if part.get("type", "text") == "text" else None
            if found is None:
                self._parts_left_out[filled(part.get("type")) or "unknown"] += 1
            else:
                texts.append(self.resolved(found))
        return "".join(texts)

    # Which calls belong to the main conversation

    def _main_calls(self, events: Sequence[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the model events of the main conversation with their index.

        Its replies are those that stand in `sample.messages`; a failed call belongs to it when the same messages
        came before it. Where no message id says so (logs of 2024), the span that made most calls is taken.
        """
        outside = _spans_below(events, ("scorer", "scorers"))
        calls = [
            (index, event)
            for index, event in enumerate(events)
            if event.get("event") == "model"
            and filled(event.get("span_id")) not in outside
            and not filled(event.get("role"))
        ]
        ids = {found for message in self._messages if (found := filled(message.get("id")))}
        ids_of_replies = [filled(mapping(self._reply_of(event)).get("id")) for _, event in calls]
        if not any(found in ids for found in ids_of_replies if found) and not self._knows_inputs(calls, ids):
            return _largest_group(calls)
        main_replies: set[str] = set()
        kept: list[tuple[int, Mapping[str, Any]]] = []
        for (index, event), reply_id in zip(calls, ids_of_replies, strict=True):
            inputs = [filled(message.get("id")) for message in self._input(event)]
            shared = [found for found in inputs if found in ids or found in main_replies]
            if (reply_id in ids and _failure(event) is None) or (shared and len(shared) == len(inputs)):
                kept.append((index, event))
                if reply_id:
                    main_replies.add(reply_id)
        return kept

    def _knows_inputs(self, calls: Sequence[tuple[int, Mapping[str, Any]]], ids: set[str]) -> bool:
        return any(filled(message.get("id")) in ids for _, event in calls for message in self._input(event))

    def _input(self, event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        found = [mapping(each) for each in sequence(event.get("input"))]
        for span in sequence(event.get("input_refs")):
            match span:
                case [int(start), int(end)] if 0 <= start <= end:
                    found.extend(mapping(each) for each in self._pool[start:end])
        return found

    def _reply_of(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        choices = sequence(mapping(event.get("output")).get("choices"))
        return mapping(mapping(choices[0]).get("message")) if choices else None

    # Lines

    def _call(self, index: int, event: Mapping[str, Any]) -> None:
        origin = f"events[{index}]"
        self._said_by_others(self._input(event), f"{origin}.input")
        output = mapping(event.get("output"))
        reply = self._reply_of(event)
        at = moment(event.get("completed")) or moment(event.get("timestamp"))
        model = filled(output.get("model")) or filled(event.get("model"))
        tools = tuple(name for tool in sequence(event.get("tools")) if (name := filled(mapping(tool).get("name"))))
        failure = _failure(event)
        if failure is None and reply is None:
            failure = _NO_REPLY_RECORDED
        self.last_call_error = failure
        self.last_call_chain = filled(event.get("traceback"))
        if failure is not None or reply is None:
            self._chat.failed_call(origin, failure or _NO_REPLY_RECORDED, model=model, offered_tools=tools, at=at)
            return
        self._add_reply(
            reply,
            origin,
            finish=filled(mapping(sequence(output.get("choices"))[0]).get("stop_reason")),
            usage=present(dict(mapping(output.get("usage")))) or None,
            model=model,
            offered_tools=tools,
            # Of the raw answer: the message's own id is made by inspect, also where its cache answered.
            response_id=filled(mapping(mapping(event.get("call")).get("response")).get("id")),
            at=at,
        )

    def _add_reply(self, message: Mapping[str, Any], origin: str, **facts: Any) -> None:
        self._said[self._key(message)] += 1
        calls = tuple(self._tool_calls(message))
        self._chat.reply(origin, self.content(message.get("content")), calls, **facts)

    def _said_by_others(self, messages: Sequence[Mapping[str, Any]], origin: str) -> None:
        """Add what was said between two replies: each message once, however often it is sent along."""
        seen: Counter[str] = Counter()
        for index, message in enumerate(messages):
            key = self._key(message)
            seen[key] += 1
            if seen[key] <= self._said[key]:
                continue
            self._said[key] += 1
            role = message.get("role")
            if role == "assistant":
                self._given_answers += 1
            elif role in ("system", "user", "tool"):
                self._other(message, ROLES[role], f"{origin}[{index}]")

    def _other(self, message: Mapping[str, Any], role: Role, origin: str) -> None:
        call_id = filled(message.get("tool_call_id")) if role == "tool" else None
        said = self.content(message.get("content"))
        error = mapping(message.get("error"))
        if not said and error:
            said = text(error.get("message"))
        raw = self._raw_results.get(call_id or "")
        raw = self.resolved(raw) if raw is not None else None
        self._chat.said(
            origin,
            role,
            said,
            call_id=call_id,
            raw_output=raw if raw != said else None,
            error=filled(error.get("message")) if role == "tool" else None,
        )

    def _from_messages(self) -> None:
        """Read a log without model events: the messages are all there is."""
        for index, message in enumerate(self._messages):
            if message.get("role") == "assistant" and message.get("source") in (None, "generate"):
                self._add_reply(message, f"messages[{index}]", model=filled(message.get("model")))
            else:
                self._said_by_others([message], "messages")
        if self._messages:
            self.missing.append("model events: none recorded, so failed calls and offered tools are not known")

    def _tool_calls(self, message: Mapping[str, Any]) -> Iterator[ToolCall]:
        for call in map(mapping, sequence(message.get("tool_calls"))):
            name = filled(call.get("function"))
            if name is None:
                continue
            arguments = call.get("arguments")
            if not isinstance(arguments, str):
                arguments = json.dumps(self._resolved_all(arguments or {}), ensure_ascii=False)
            yield ToolCall(id=filled(call.get("id")), name=name, arguments=arguments)

    def _resolved_all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.resolved(value)
        if isinstance(value, dict):
            return {key: self._resolved_all(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._resolved_all(item) for item in value]
        return value

    def _key(self, message: Mapping[str, Any]) -> str:
        """Return what makes a message the same message when it is sent again."""
        recorded = filled(message.get("id"))
        if recorded is not None:
            return recorded
        parts = ("role", "content", "tool_call_id", "tool_calls")
        return digest_of([self._resolved_all(message.get(part)) for part in parts])

    def _say_what_is_left_out(self) -> None:
        if self._given_answers:
            self.missing.append(
                f"{self._given_answers} assistant messages were given to the model, not made by it: left out"
            )
        for kind, count in sorted(self._parts_left_out.items()):
            self.missing.append(
                how_many(count, f"content part of type {kind} is", f"content parts of type {kind} are")
                + " left out"
            )


def _failure(event: Mapping[str, Any]) -> str | None:
    """Return the error text of a model event that gave no reply."""
    return filled(event.get("error")) or (_NO_REPLY_RECORDED if event.get("pending") is True else None)


def _spans_below(events: Sequence[Mapping[str, Any]], types: tuple[str, ...]) -> set[Any]:
    """Return the ids of spans of these types, and of all spans inside them."""
    inside: set[Any] = set()
    for event in events:
        if event.get("event") == "span_begin":
            span, parent = filled(event.get("id")), filled(event.get("parent_id"))
            if span is not None and (event.get("type") in types or (parent is not None and parent in inside)):
                inside.add(span)
    return inside


def _largest_group(
    calls: Sequence[tuple[int, Mapping[str, Any]]],
) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the calls of the span that made most of them; of two equal ones the first."""
    counts = Counter(filled(event.get("span_id")) for _, event in calls)
    if not counts:
        return []
    most = max(counts.values())
    span = next(span for span, count in counts.items() if count == most)
    return [(index, event) for index, event in calls if filled(event.get("span_id")) == span]
