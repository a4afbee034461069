"""Given texts: what the agent was given, and what it handed out, as far as it was recorded.

Knows which parts of an attempt are nobody's new words. Must not import the expectations.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import ToolCall
from pytest_regcase.records.wire import SentReply


class Answer(NamedTuple):
    """One model answer as the agent's own record shows it."""

    place: str
    """Where it stands, such as ``messages[4]`` or ``final_text``."""
    text: str | None
    calls: tuple[ToolCall, ...] = ()

    @property
    def empty(self) -> bool:
        """Say whether it holds neither text nor a call."""
        return not self.calls and not (self.text or "").strip()


def complete_replies(observed: Observed) -> tuple[SentReply, ...]:
    """Return the replies that the supplier sent whole."""
    return tuple(reply for reply in observed.wire.replies if not reply.unfinished)


def transcript_answers(observed: Observed) -> tuple[Answer, ...]:
    """Return the model answers of the agent's transcript, in order; failed model calls are none."""
    steps = observed.artefact.steps if observed.artefact is not None else ()
    return tuple(
        Answer(line.origin or f"transcript line {number}", line.text, line.tool_calls)
        for number, line in enumerate(steps, start=1)
        if line.is_reply
    )


def given_texts(observed: Observed) -> Iterator[str]:
    """Yield every text that the agent was given: task, prompts, tool results, whole replies, its own diffs."""
    if observed.task_text:
        yield observed.task_text
    if (trial := observed.artefact) is not None:
        if trial.task_text:
            yield trial.task_text
        for line in trial.steps:
            if line.role == "tool" or (line.step == 0 and line.role != "assistant"):
                yield from (text for text in (line.text, line.raw_output) if text)
    for reply in complete_replies(observed):
        yield from pieces(reply)
    yield from (text for text in observed.wire.fault_texts if text)
    for tree in (observed.notes.work_tree if observed.notes is not None else None, observed.work_tree):
        if tree is not None:
            yield from (text for text in (tree.diff, tree.committed_diff) if text)


def answer_texts(observed: Observed) -> Iterator[str]:
    """Yield every text that the agent handed out as an answer or a submission."""
    for answer in transcript_answers(observed):
        yield answer.text or ""
        for call in answer.calls:
            yield from leaves(call.arguments)
    yield observed.declared.answer or ""
    yield observed.declared.submission or ""
    if (trial := observed.artefact) is not None:
        yield trial.final_text or ""
        if trial.submission is not None:
            yield trial.submission.text or ""
            yield trial.submission.patch or ""


def pieces(reply: SentReply) -> Iterator[str]:
    """Yield the texts that a reply is made of: its text, the strings of a JSON text, the strings of its calls."""
    if reply.text:
        yield reply.text
        if reply.text.lstrip()[:1] in ("{", "["):
            yield from leaves(reply.text)
    for call in reply.tool_calls:
        yield from leaves(call.arguments)


def leaves(text: str) -> Iterator[str]:
    """Yield every string inside a JSON text; the text itself where it is no JSON."""
    waiting = [read_json(text)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))


def json_keys(text: str) -> Iterator[str]:
    """Yield the keys of the JSON object that `text` holds; none where it holds no object."""
    value = read_json(text)
    if isinstance(value, dict):
        yield from map(str, value)


def read_json(text: str) -> object:
    """Return what the JSON `text` holds; the text itself, stripped, where it is none."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
    return value


def canonical_call(call: ToolCall) -> tuple[str, str]:
    """Return what makes two calls the same: the name, and the arguments whatever their spacing and key order."""
    arguments = read_json(call.arguments)
    try:
        return call.name, arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True)
    except RecursionError:  # pragma: no cover - json reads what it cannot write only near the interpreter's limit
        return call.name, call.arguments.strip()
