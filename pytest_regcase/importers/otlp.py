"""OpenTelemetry traces with GenAI spans, as OTLP JSON writes them: one object, or one a line. One trial a trace.

Field names after opentelemetry-proto's `trace.proto` and its JSON mapping; attribute names after the semantic
conventions for generative AI, old and new, and OpenLLMetry's. Must import no other importer.

What surprises: ids are hex and times texts of nanoseconds; a span that never ended is not exported; an attribute
dump of one span is no OTLP; content is absent unless the instrumentation was told to record it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.json_records import JsonRecords, LastRecords, decoded
from pytest_regcase.importers.otlp_messages import (
    attributes_of,
    given_messages,
    said_message,
)
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    bare,
    digests_of,
    exception_chain,
    filled,
    mapping,
    moment,
    present,
    refused,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.span_tree import Span, SpanKind, SpanTree, ref_of_trace, shown_by_a_trace
from pytest_regcase.importers.user_marks import attempt_in, task_in
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import ErrorLink, Trial, TrialError, TrialRef

_OPERATIONS: Final[Mapping[str, SpanKind]] = {
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
}
_TRACELOOP: Final[Mapping[str, SpanKind]] = {"workflow": "agent", "agent": "agent", "tool": "tool"}
_USAGE: Final[Mapping[str, str]] = {
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.prompt_tokens": "prompt_tokens",
    "gen_ai.usage.completion_tokens": "completion_tokens",
}
_CONDITIONS: Final = ("gen_ai.provider.name", "gen_ai.system", "server.address", "server.port")
_CONTENT: Final = (
    "gen_ai.input.",
    "gen_ai.output.",
    "gen_ai.prompt",
    "gen_ai.completion",
    "gen_ai.system_instructions",
    "gen_ai.tool.",
    "traceloop.entity.",
)
"""How the attributes begin that hold what was said."""
_ERROR_CODES: Final = (2, "STATUS_CODE_ERROR")


class Otlp:
    """Importer of OTLP JSON traces."""

    name = "otlp"

    def __init__(self) -> None:
        self._last = LastRecords()

    def handles(self, peek: Peek) -> bool:
        """Say whether its first object has `resourceSpans`."""
        return peek.kind == "file" and "resourceSpans" in peek.shape.keys

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each trace that holds a GenAI span; the key is the trace id."""
        traces, _ = _read(source, None, self._last)
        for trace in traces:
            tree = trace.tree(with_content=False)
            yield ref_of_trace(tree, key=trace.id, task_id=trace.task_id, attempt=trace.attempt)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one trace. Outcome is always undetermined: spans have none."""
        traces, missing = _read(source, ref.key, self._last)
        if not traces:
            raise refused("no-such-trial", source, f"it holds no trace {ref.key} any more", "Look it up again.")
        trace = traces[0]
        tree = trace.tree(with_content=True)
        root = trace.attributes_at_the_root(tree)
        return Trial(
            format=Otlp.name,
            harness=_service(trace.resource),
            run_id=trace.first("gen_ai.conversation.id"),
            task_id=trace.task_id,
            attempt=trace.attempt,
            event_id=trace.id,
            event_id_from="recorded",
            revision=filled(trace.resource.get("service.version")),
            model=trace.first("gen_ai.request.model") or trace.first("gen_ai.response.model"),
            started_at=min((each for each in trace.times("startTimeUnixNano")), default=None),
            ended_at=max((each for each in trace.times("endTimeUnixNano")), default=None),
            task_text=tree.task_text,
            steps=tree.lines,
            failing_step=tree.failing_step,
            termination=tree.termination,
            error=tree.error,
            conditions=trace.conditions(),
            final_text=text((said_message(root, ()) or {}).get("content")),
            model_requests=len(tree.calls) or None,
            can_show=shown_by_a_trace(tree),
            source_digests=digests_of(source),
            missing=(*missing, *tree.missing),
        )


@dataclass
class _Trace:
    id: str
    resource: Mapping[str, Any]
    spans: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    attributes: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, span: Mapping[str, Any], *, with_content: bool) -> None:
        """Take a span; of one that was exported twice the last one counts."""
        span_id = _hex(span.get("spanId")) or f"span {len(self.spans)}"
        attributes = attributes_of(span.get("attributes"))
        if not with_content:  # a list of a thousand traces must not hold what was said in them
            attributes = {key: each for key, each in attributes.items() if not key.startswith(_CONTENT)}
            events = [each for each in sequence(span.get("events")) if mapping(each).get("name") == "exception"]
            span = {**{key: each for key, each in span.items() if key != "attributes"}, "events": events}
        self.spans[span_id] = span
        self.attributes[span_id] = attributes

    @property
    def is_trial(self) -> bool:
        return any(
            key.startswith(("gen_ai.", "traceloop.", "llm.request."))
            for each in self.attributes.values()
            for key in each
        )

    @property
    def ordered(self) -> list[str]:
        return sorted(self.spans, key=lambda each: _nanoseconds(self.spans[each].get("startTimeUnixNano")))

    @property
    def task_id(self) -> str | None:
        return next(filter(None, map(task_in, self._marked())), None)

    @property
    def attempt(self) -> int | None:
        return next((found for each in self._marked() if (found := attempt_in(each)) is not None), None)

    def _marked(self) -> Iterator[Mapping[str, Any]]:
        yield from (self.attributes[each] for each in self.ordered)
        yield self.resource

    def first(self, name: str) -> str | None:
        """Return the first filled text of an attribute, in the order of the spans."""
        return next((found for each in self.ordered if (found := filled(self.attributes[each].get(name)))), None)

    def times(self, name: str) -> Iterator[datetime]:
        yield from filter(None, (_time(span.get(name)) for span in self.spans.values()))

    def conditions(self) -> dict[str, Any]:
        """Return what the first model call was asked with, as recorded."""
        for each in self.ordered:
            attributes = self.attributes[each]
            if _kind(attributes) == "model":
                kept = {key: value for key, value in attributes.items() if key in _CONDITIONS}
                kept |= {
                    key: value
                    for key, value in attributes.items()
                    if key.startswith("gen_ai.request.") and key != "gen_ai.request.model"
                }
                found: dict[str, Any] = present(kept)
                return found
        return {}

    def attributes_at_the_root(self, tree: SpanTree) -> Mapping[str, Any]:
        return self.attributes[tree.root.id] if tree.root is not None and tree.root.kind == "agent" else {}

    def tree(self, *, with_content: bool) -> SpanTree:
        return SpanTree(
            [_span(each, self.spans[each], self.attributes[each], with_content) for each in self.ordered]
        )


def _read(source: Path, key: str | None, last: LastRecords) -> tuple[list[_Trace], list[str]]:
    """Return the traces with GenAI spans, or the one that is meant, in the order of the file."""
    traces: dict[str, _Trace] = {}
    records = JsonRecords(source, last=last)
    without_id = 0
    for _, record in records:
        for resource_spans in map(mapping, sequence(record.get("resourceSpans"))):
            resource = attributes_of(mapping(resource_spans.get("resource")).get("attributes"))
            for scope in map(mapping, sequence(resource_spans.get("scopeSpans"))):
                for span in map(mapping, sequence(scope.get("spans"))):
                    trace_id = _hex(span.get("traceId"))
                    if trace_id is None:
                        without_id += 1
                    elif key is None or trace_id == key:
                        traces.setdefault(trace_id, _Trace(trace_id, resource)).add(
                            span, with_content=key is not None
                        )
    missing = records.missing
    if without_id:
        missing.append(how_many(without_id, "span") + " without a trace id left out")
    return [trace for trace in traces.values() if trace.is_trial], missing


def _span(span_id: str, span: Mapping[str, Any], attributes: Mapping[str, Any], with_content: bool) -> Span:
    kind = _kind(attributes)
    events = [
        (filled(each.get("name")) or "", attributes_of(each.get("attributes")))
        for each in map(mapping, sequence(span.get("events")))
    ]
    facts: dict[str, Any] = {"at": _time(span.get("endTimeUnixNano"))}
    if kind == "model":
        reasons = decoded(attributes.get("gen_ai.response.finish_reasons"))
        facts |= {
            "model": filled(attributes.get("gen_ai.response.model"))
            or filled(attributes.get("gen_ai.request.model")),
            "response_id": filled(attributes.get("gen_ai.response.id")),
            "finish": next(filter(None, map(filled, sequence(reasons))), None),
            "usage": {
                ours: attributes[name] for name, ours in _USAGE.items() if whole(attributes.get(name)) is not None
            }
            or None,
            "offered_tools": _tool_names(decoded(attributes.get("gen_ai.tool.definitions"))) or None,
        }
    with_content = with_content and kind in ("model", "tool")
    return Span(
        id=span_id,
        parent=_hex(span.get("parentSpanId")),
        kind=kind,
        origin=f"span {span_id}",
        is_open=_nanoseconds(span.get("endTimeUnixNano")) == 0,
        failure=_failure(span, attributes, events),
        given=given_messages(attributes, events) if with_content and kind == "model" else (),
        said=said_message(attributes, events) if with_content and kind == "model" else None,
        facts={name: fact for name, fact in facts.items() if fact is not None},
        call_id=filled(attributes.get("gen_ai.tool.call.id")),
        output=text(attributes.get("gen_ai.tool.call.result", attributes.get("traceloop.entity.output"))),
    )


def _kind(attributes: Mapping[str, Any]) -> SpanKind:
    operation = filled(attributes.get("gen_ai.operation.name"))
    if operation is not None:
        return _OPERATIONS.get(operation, "other")
    if filled(attributes.get("llm.request.type")) in ("chat", "completion"):
        return "model"
    loop = filled(attributes.get("traceloop.span.kind"))
    if loop is not None:
        return _TRACELOOP.get(loop, "other")
    return "model" if filled(attributes.get("gen_ai.request.model")) else "other"


def _failure(span: Mapping[str, Any], attributes: Mapping[str, Any], events: list[Any]) -> TrialError | None:
    """Return the span's error. An exception event alone is none: what was raised may have been handled."""
    status = mapping(span.get("status"))
    kind = filled(attributes.get("error.type"))
    if status.get("code") not in _ERROR_CODES and kind is None:
        return None
    raised: Mapping[str, Any] = next((each for name, each in reversed(events) if name == "exception"), {})
    kind = kind or filled(raised.get("exception.type"))
    traceback = filled(raised.get("exception.stacktrace"))
    return TrialError(
        type=bare(kind) or kind if kind is not None else None,
        message=filled(status.get("message")) or filled(raised.get("exception.message")),
        traceback=traceback,
        chain=tuple(ErrorLink(type=each, message=words) for each, words in exception_chain(traceback)),
    )


def _tool_names(definitions: Any) -> tuple[str, ...]:
    found = (
        filled(each.get("name")) or filled(mapping(each.get("function")).get("name"))
        for each in map(mapping, sequence(definitions))
    )
    return tuple(filter(None, found))


def _service(resource: Mapping[str, Any]) -> str | None:
    name = filled(resource.get("service.name"))
    return None if name is None or name.startswith("unknown_service") else name


def _hex(value: Any) -> str | None:
    """Return an id; hex ids compare without regard to case."""
    found = filled(value)
    if found is None or not found.strip("0"):
        return None
    return found.lower() if all(each in "0123456789abcdefABCDEF" for each in found) else found


def _nanoseconds(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        return int(value)
    return whole(value) or 0


def _time(value: Any) -> datetime | None:
    return moment(_nanoseconds(value) / 1_000_000_000)
