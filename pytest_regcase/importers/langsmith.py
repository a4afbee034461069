"""LangSmith runs, as a JSON list, JSON lines or one root with its child runs. One trial a trace.

Field names after langsmith 0.15.1's `schemas.Run`. Must import no other importer.

What surprises: `dotted_order` gives the order, neither the file nor the start does; `error` is one text, the
exception's repr and then its traceback; a run without an end is pending, the trial was cut off there.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.chat_messages import arguments_text
from pytest_regcase.importers.json_records import JsonRecords, LastRecords
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
)
from pytest_regcase.importers.span_tree import Span, SpanKind, SpanTree, ref_of_trace, shown_by_a_trace
from pytest_regcase.importers.user_marks import attempt_in, outcome_in, task_in
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import ErrorLink, Trial, TrialError, TrialRef
from pytest_regcase.records.words import Outcome

_KINDS: Final[Mapping[str, SpanKind]] = {"llm": "model", "tool": "tool"}
_TRACEBACK: Final = "Traceback (most recent call last)"
_REPR = re.compile(r"([A-Za-z_][\w.]*)\((.*)\)\s*\Z", re.DOTALL)
_ROLES: Final[Mapping[str, str]] = {
    "SystemMessage": "system",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "ToolMessage": "tool",
    "system": "system",
    "human": "user",
    "ai": "assistant",
    "tool": "tool",
}
"""LangChain's names of who speaks."""
_CHILDREN_LIMIT: Final = 100_000


class LangSmith:
    """Importer of LangSmith runs."""

    name = "langsmith"

    def __init__(self) -> None:
        self._last = LastRecords()

    def handles(self, peek: Peek) -> bool:
        """Say whether its first objects are runs: they have a run type, a trace and a place in it."""
        keys = peek.shape.keys
        return peek.kind == "file" and "run_type" in keys and bool(keys & {"dotted_order", "trace_id"})

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
        """Read one trace. Only feedback of yes or no under an unmistakable name is an outcome."""
        traces, missing = _read(source, ref.key, self._last)
        if not traces:
            raise refused("no-such-trial", source, f"it holds no trace {ref.key} any more", "Look it up again.")
        trace = traces[0]
        tree = SpanTree(trace.spans(with_content=True), unended_are_in_it=True)
        outcome = trace.outcome
        top = trace.top
        return Trial(
            format=LangSmith.name,
            run_id=filled(top.get("session_id")),
            task_id=trace.task_id,
            attempt=trace.attempt,
            event_id=trace.id,
            event_id_from="recorded",
            revision=trace.first("revision_id"),
            model=trace.first("ls_model_name"),
            started_at=min(trace.times("start_time"), default=None),
            ended_at=max(trace.times("end_time"), default=None),
            task_text=_only_text(top.get("inputs")) or tree.task_text,
            steps=tree.lines,
            failing_step=tree.failing_step,
            termination=tree.termination,
            outcome=outcome,
            outcome_from="log" if outcome != "undetermined" else None,
            error=tree.error,
            labels=trace.labels,
            conditions=trace.conditions,
            final_text=_only_text(top.get("outputs")) if tree.termination == "finished" else None,
            model_requests=len(tree.calls) or None,
            can_show=shown_by_a_trace(tree),
            source_digests=digests_of(source),
            missing=(*missing, *tree.missing),
        )


@dataclass
class _Trace:
    id: str
    runs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, run: Mapping[str, Any], origin: str) -> None:
        name = filled(run.get("id")) or origin
        self.runs[name] = run
        self.origins[name] = origin

    @property
    def _order(self) -> list[str]:
        def place(name: str) -> str:
            run = self.runs[name]
            return filled(run.get("dotted_order")) or filled(run.get("start_time")) or ""

        return sorted(self.runs, key=place)

    @property
    def ordered(self) -> list[Mapping[str, Any]]:
        return [self.runs[name] for name in self._order]

    @property
    def top(self) -> Mapping[str, Any]:
        """The root run; empty where it is not in the log."""
        return next((run for run in self.ordered if filled(run.get("parent_run_id")) is None), {})

    @property
    def _marked(self) -> list[Mapping[str, Any]]:
        return [mapping(mapping(run.get("extra")).get("metadata")) for run in self.ordered]

    @property
    def task_id(self) -> str | None:
        named = next(filter(None, map(task_in, self._marked)), None)
        return named or filled(self.top.get("reference_example_id"))

    @property
    def attempt(self) -> int | None:
        return next((found for each in self._marked if (found := attempt_in(each)) is not None), None)

    @property
    def _feedback(self) -> list[tuple[str, Any]]:
        stats = mapping(self.top.get("feedback_stats"))
        return [(name, mapping(each).get("avg")) for name, each in stats.items()]

    @property
    def outcome(self) -> Outcome:
        return outcome_in(self._feedback)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(
            f"langsmith:feedback:{name}={value}"
            for name, value in self._feedback
            if isinstance(value, str | int | float)
        )

    @property
    def conditions(self) -> dict[str, Any]:
        first = next((run for run in self.ordered if run.get("run_type") == "llm"), {})
        extra = mapping(first.get("extra"))
        metadata = mapping(extra.get("metadata"))
        kept = {
            "provider": metadata.get("ls_provider"),
            "temperature": metadata.get("ls_temperature"),
            "max_tokens": metadata.get("ls_max_tokens"),
        }
        found: dict[str, Any] = present(kept)
        return found

    def first(self, name: str) -> str | None:
        return next((found for each in self._marked if (found := filled(each.get(name)))), None)

    def times(self, name: str) -> Iterator[datetime]:
        yield from filter(None, (_time(run.get(name)) for run in self.runs.values()))

    def spans(self, *, with_content: bool) -> list[Span]:
        return [_span(name, self.runs[name], self.origins[name], with_content) for name in self._order]


def _read(source: Path, key: str | None, last: LastRecords) -> tuple[list[_Trace], list[str]]:
    """Return the traces, or the one that is meant, in the order of the file."""
    traces: dict[str, _Trace] = {}
    records = JsonRecords(source, last=last)
    without_id = 0
    for origin, record in records:
        for place, run in _with_children(record, origin):
            if "run_type" not in run:
                continue
            if key is None:  # a list of a thousand traces must not hold what was said in them
                run = {name: fact for name, fact in run.items() if name not in ("inputs", "outputs", "events")}
            trace_id = filled(run.get("trace_id"))
            if trace_id is None:
                without_id += 1
            elif key is None or trace_id == key:
                traces.setdefault(trace_id, _Trace(trace_id)).add(run, place)
    missing = records.missing
    if without_id:
        missing.append(how_many(without_id, "run") + " without a trace id left out")
    return list(traces.values()), missing


def _with_children(run: Mapping[str, Any], origin: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    waiting = [(origin, run)]
    for _ in range(_CHILDREN_LIMIT):
        if not waiting:
            return
        place, each = waiting.pop()
        yield place, {key: value for key, value in each.items() if key != "child_runs"}
        for index, child in enumerate(map(mapping, sequence(each.get("child_runs")))):
            waiting.append((f"{place} child_runs[{index}]".strip(), child))


def _span(name: str, run: Mapping[str, Any], origin: str, with_content: bool) -> Span:
    kind = _KINDS.get(filled(run.get("run_type")) or "", "other")
    inputs, outputs = mapping(run.get("inputs")), mapping(run.get("outputs"))
    facts: dict[str, Any] = {"at": _time(run.get("end_time"))}
    if kind == "model":
        usage = mapping(mapping(outputs.get("llm_output")).get("token_usage")) or mapping(outputs.get("usage"))
        metadata = mapping(mapping(run.get("extra")).get("metadata"))
        facts |= {"model": filled(metadata.get("ls_model_name")), "usage": present(dict(usage)) or None}
    output = outputs.get("output") if len(outputs) == 1 else outputs or None
    return Span(
        id=name,
        parent=filled(run.get("parent_run_id")),
        kind=kind,
        origin=origin,
        is_open=run.get("status") == "pending" or run.get("end_time") is None,
        failure=_failure(run),
        given=_given(inputs) if with_content and kind == "model" else (),
        said=_said(outputs) if with_content and kind == "model" else None,
        facts={key: fact for key, fact in facts.items() if fact is not None},
        call_id=filled(mapping(output).get("tool_call_id")),
        output=_result(output) if with_content and kind == "tool" else None,
    )


def _failure(run: Mapping[str, Any]) -> TrialError | None:
    """Split the error's text where its traceback begins."""
    said = filled(run.get("error"))
    if said is None:
        return TrialError() if run.get("status") == "error" else None
    head, mark, tail = said.partition(_TRACEBACK)
    traceback = mark + tail if mark else None
    chain = exception_chain(traceback)
    shown = _REPR.match(head.strip())
    kind = shown[1] if shown is not None else chain[0][0] if chain else None
    message = (chain[0][1] if chain else None) or _quoted(shown[2] if shown is not None else head)
    return TrialError(
        type=bare(kind) if kind is not None else None,
        message=message,
        traceback=traceback,
        chain=tuple(ErrorLink(type=each, message=words) for each, words in chain),
    )


def _quoted(words: str) -> str | None:
    words = words.strip()
    if len(words) > 1 and words[0] in "'\"" and words[-1] == words[0]:
        words = words[1:-1]
    return words or None


def _given(inputs: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    messages = sequence(inputs.get("messages"))
    if messages and isinstance(messages[0], list):  # a batch; an agent's has one
        messages = messages[0]
    if not messages and isinstance(inputs.get("prompts"), list):
        return tuple({"role": "user", "content": each} for each in inputs["prompts"][:1])
    return tuple(_plain(each) for each in map(mapping, messages))


def _said(outputs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first reply: LangChain's generations, or a chat completion."""
    generations = sequence(outputs.get("generations"))
    first = generations[0] if generations else None
    generation = mapping(first[0] if isinstance(first, list) and first else first)
    if generation:
        message = _plain(mapping(generation.get("message")))
        content = message.get("content", generation.get("text"))
        finish = mapping(generation.get("generation_info")).get("finish_reason")
        return {"finish_reason": finish, **message, "role": "assistant", "content": content}
    choices = sequence(outputs.get("choices"))
    if choices:
        choice = mapping(choices[0])
        return {
            "finish_reason": choice.get("finish_reason"),
            **_plain(mapping(choice.get("message"))),
            "role": "assistant",
        }
    if outputs.keys() & {"content", "tool_calls"}:
        return {**_plain(outputs), "role": "assistant"}
    return None


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with our role: plain, or as LangChain serialises its classes."""
    names = sequence(message.get("id"))
    kind = message.get("type")
    if "kwargs" in message and names:
        role = _ROLES.get(filled(names[-1]) or "")
        message = mapping(message["kwargs"])
    else:
        role = filled(message.get("role")) or _ROLES.get(kind if isinstance(kind, str) else "")
    kept = {key: value for key, value in message.items() if key not in ("type", "id")}
    return {**kept, "role": role} if role is not None else kept


def _result(output: Any) -> str | None:
    content = mapping(output).get("content", mapping(mapping(output).get("kwargs")).get("content"))
    if isinstance(content, str):
        return content
    return None if output is None else text(output) if isinstance(output, str) else arguments_text(output)


def _only_text(values: Any) -> str | None:
    """Return the one text of an object; None where it holds several things."""
    found = mapping(values)
    return filled(next(iter(found.values()))) if len(found) == 1 else None


def _time(value: Any) -> datetime | None:
    """Return a point in time; the SDK's dictionaries write UTC without a zone."""
    found = moment(value)
    return found if found is not None or not isinstance(value, str) else moment(f"{value}+00:00")
