"""Langfuse traces: a trace download (trace, observations, scores), or observations as a list or JSON lines.

Field names after langfuse 5.0.4's ObservationV2 and the trace download of its user interface; the blob export
spells them in snake case, with times in UTC that carry no zone. Must import no other importer.

What surprises: inputs and outputs may be JSON texts; an error is a level and a sentence, without a type; what
never ended is exported too, so a parent that is missing was only left out of the export.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.chat_messages import arguments_text
from pytest_regcase.importers.json_records import JsonRecords, LastRecords, decoded
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    digests_of,
    filled,
    mapping,
    moment,
    present,
    refused,
    sequence,
)
from pytest_regcase.importers.span_tree import Span, SpanKind, SpanTree, ref_of_trace, shown_by_a_trace
from pytest_regcase.importers.user_marks import attempt_in, outcome_in, task_in
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import Trial, TrialError, TrialRef
from pytest_regcase.records.words import Outcome

_KINDS: Final[Mapping[str, SpanKind]] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}
_CAMEL: Final[Mapping[str, str]] = {
    "trace_id": "traceId",
    "parent_observation_id": "parentObservationId",
    "status_message": "statusMessage",
    "start_time": "startTime",
    "end_time": "endTime",
    "session_id": "sessionId",
    "provided_model_name": "model",
    "model_parameters": "modelParameters",
    "usage_details": "usageDetails",
    "data_type": "dataType",
    "string_value": "stringValue",
}
_DOWNLOAD: Final = frozenset({"id", "timestamp", "observations", "scores"})
_OBSERVATION: Final = ({"traceId", "level", "startTime", "type"}, {"trace_id", "level", "start_time", "type"})


class Langfuse:
    """Importer of Langfuse traces."""

    name = "langfuse"

    def __init__(self) -> None:
        self._last = LastRecords()

    def handles(self, peek: Peek) -> bool:
        """Say whether it holds observations: they have a trace id, a type, a level and a start."""
        if peek.kind != "file":
            return False
        keys = peek.shape.keys
        if peek.shape.kind == "object" and keys >= {"id", "timestamp"}:  # what a trace was given may be long
            keys = peek.whole_shape.keys
        if keys >= _DOWNLOAD or any(wanted <= keys for wanted in _OBSERVATION):
            return True
        inside = "data" in keys or "observations" in keys
        return inside and any(all(f'"{key}"'.encode() in peek.head for key in wanted) for wanted in _OBSERVATION)

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each trace; the key is the trace id."""
        traces, _ = _read(source, None, self._last)
        for trace in traces:
            yield ref_of_trace(
                SpanTree(trace.spans(with_content=False), unended_are_in_it=True),
                key=trace.id,
                task_id=trace.task_id,
                attempt=trace.attempt,
                outcome=trace.outcome,
            )

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one trace. Only a yes-or-no score of an unmistakable name is an outcome."""
        traces, missing = _read(source, ref.key, self._last)
        if not traces:
            raise refused("no-such-trial", source, f"it holds no trace {ref.key} any more", "Look it up again.")
        trace = traces[0]
        tree = SpanTree(trace.spans(with_content=True), unended_are_in_it=True)
        outcome = trace.outcome
        return Trial(
            format=Langfuse.name,
            run_id=filled(trace.facts.get("sessionId")),
            task_id=trace.task_id,
            attempt=trace.attempt,
            event_id=trace.id,
            event_id_from="recorded",
            revision=trace.first("release") or trace.first("version"),
            model=next((filled(each.get("model")) for each in trace.ordered if filled(each.get("model"))), None),
            started_at=min(trace.times("startTime"), default=_time(trace.facts.get("timestamp"))),
            ended_at=max(trace.times("endTime"), default=None),
            task_text=tree.task_text,
            steps=tree.lines,
            failing_step=tree.failing_step,
            termination=tree.termination,
            outcome=outcome,
            outcome_from="log" if outcome != "undetermined" else None,
            error=tree.error,
            labels=trace.labels,
            conditions=trace.conditions,
            final_text=filled(trace.facts.get("output")),
            model_requests=len(tree.calls) or None,
            can_show=shown_by_a_trace(tree),
            source_digests=digests_of(source),
            missing=(*missing, *tree.missing),
        )


@dataclass
class _Trace:
    id: str
    facts: dict[str, Any] = field(default_factory=dict)
    """What the trace itself says, where it is there."""
    scores: list[Mapping[str, Any]] = field(default_factory=list)
    observations: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, observation: Mapping[str, Any], origin: str) -> None:
        name = filled(observation.get("id")) or origin
        self.observations[name] = observation
        self.origins[name] = origin

    @property
    def ordered(self) -> list[Mapping[str, Any]]:
        return [self.observations[name] for name in self._order]

    @property
    def _order(self) -> list[str]:
        # What has no start that can be read stands where the file has it, before the others.
        return sorted(self.observations, key=lambda each: _seconds(self.observations[each].get("startTime")))

    @property
    def _marked(self) -> list[Mapping[str, Any]]:
        return [mapping(decoded(each.get("metadata"))) for each in (self.facts, *self.ordered)]

    @property
    def task_id(self) -> str | None:
        return next(filter(None, map(task_in, self._marked)), None)

    @property
    def attempt(self) -> int | None:
        return next((found for each in self._marked if (found := attempt_in(each)) is not None), None)

    @property
    def outcome(self) -> Outcome:
        return outcome_in(
            (filled(each.get("name")) or "", each.get("value"))
            for each in self.scores
            if each.get("dataType", "BOOLEAN") == "BOOLEAN"
        )

    @property
    def labels(self) -> tuple[str, ...]:
        found = []
        for score in self.scores:
            value = score.get("value") if score.get("value") is not None else score.get("stringValue")
            if (name := filled(score.get("name"))) and isinstance(value, str | int | float):
                found.append(f"langfuse:score:{name}={value}")
        return tuple(found)

    @property
    def conditions(self) -> dict[str, Any]:
        first = next((each for each in self.ordered if each.get("type") == "GENERATION"), {})
        found: dict[str, Any] = present(
            {
                "model_parameters": decoded(first.get("modelParameters")),
                "environment": filled(self.facts.get("environment")) or filled(first.get("environment")),
            }
        )
        return found

    def first(self, name: str) -> str | None:
        return next((found for each in (self.facts, *self.ordered) if (found := filled(each.get(name)))), None)

    def times(self, name: str) -> Iterator[datetime]:
        yield from filter(None, (_time(each.get(name)) for each in self.observations.values()))

    def spans(self, *, with_content: bool) -> list[Span]:
        return [
            _span(name, self.observations[name], self.origins[name], self.id, with_content) for name in self._order
        ]


def _read(source: Path, key: str | None, last: LastRecords) -> tuple[list[_Trace], list[str]]:
    """Return the traces, or the one that is meant, in the order of the file."""
    traces: dict[str, _Trace] = {}
    records = JsonRecords(source, last=last)
    without_id = 0
    for origin, record in records:
        for place, each in _observations(record, origin):
            each = _camel(each)
            if key is None:  # a list of a thousand traces must not hold what was said in them
                each = {name: fact for name, fact in each.items() if name not in ("input", "output")}
            trace_id = filled(each.get("traceId"))
            if trace_id is None:
                without_id += 1
            elif key is None or trace_id == key:
                traces.setdefault(trace_id, _Trace(trace_id)).add(each, place)
        if "observations" in record:
            trace = traces.get(filled(record.get("id")) or "")
            if trace is not None:
                trace.facts = {name: fact for name, fact in _camel(record).items() if name != "observations"}
                trace.scores = [_camel(mapping(each)) for each in sequence(record.get("scores"))]
    missing = records.missing
    if without_id:
        missing.append(
            how_many(without_id, "observation has no trace id and is", "observations have no trace id and are")
            + " left out"
        )
    return list(traces.values()), missing


def _observations(record: Mapping[str, Any], origin: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in ("observations", "data"):
        if isinstance(record.get(name), list):
            for index, each in enumerate(record[name]):
                yield f"{origin} {name}[{index}]".strip(), mapping(each)
            return
    yield origin, record


def _camel(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {_CAMEL.get(key, key): value for key, value in record.items()}


def _span(name: str, observation: Mapping[str, Any], origin: str, trace_id: str, with_content: bool) -> Span:
    kind = _KINDS.get(filled(observation.get("type")) or "", "other")
    is_event = observation.get("type") == "EVENT"
    ended = _time(observation.get("endTime"))
    facts: dict[str, Any] = {"at": ended}
    if kind == "model":
        facts |= {
            "model": filled(observation.get("model")),
            "usage": present(dict(mapping(decoded(observation.get("usageDetails"))))) or None,
        }
    output = decoded(observation.get("output")) if with_content else None
    parent = filled(observation.get("parentObservationId"))
    return Span(
        id=name,
        parent=None if parent == trace_id else parent,
        kind=kind,
        origin=origin,
        is_open=not is_event and observation.get("endTime") is None,
        failure=TrialError(message=filled(observation.get("statusMessage")))
        if observation.get("level") == "ERROR"
        else None,
        given=_given(decoded(observation.get("input"))) if with_content and kind == "model" else (),
        said=_said(output) if kind == "model" else None,
        facts={key: fact for key, fact in facts.items() if fact is not None},
        output=output if isinstance(output, str) else arguments_text(output) if output is not None else None,
    )


def _given(value: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the messages of a generation's input: a list, an object that holds one, or one text."""
    if isinstance(value, str):
        return ({"role": "user", "content": value},)
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    return tuple(_plain(each) for each in map(mapping, sequence(value)) if each)


def _said(value: Any) -> Mapping[str, Any] | None:
    """Return a generation's output as an assistant message; None where it is empty or of an unknown shape."""
    if isinstance(value, str):
        return {"role": "assistant", "content": value}
    if isinstance(value, list) and value:
        value = value[-1]
    choices = sequence(mapping(value).get("choices"))
    found = mapping(mapping(choices[0]).get("message")) if choices else mapping(value)
    if not found.keys() & {"content", "tool_calls", "function_call"}:
        return None
    return {**_plain(found), "role": "assistant"}


def _plain(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in message.items() if key != "type"}


def _time(value: Any) -> datetime | None:
    """Return a point in time; the blob export's have no zone and are UTC."""
    found = moment(value)
    return found if found is not None or not isinstance(value, str) else moment(f"{value.strip()}+00:00")


def _seconds(value: Any) -> float:
    found = _time(value)
    return found.timestamp() if found is not None else float("-inf")
