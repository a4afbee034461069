"""One trace of an agent as a tree of spans: how it ended, what failed, and the conversation of its model calls.

Knows no trace format: an importer says of each span what it is. Pure; must import no importer.

What surprises: a failed call under a root that ended well was retried, so the trial did not fail by it; a span
that never ended may not be in the log at all, so a span whose parent is missing tells of a run that was cut off;
each model call repeats the conversation so far, so only what is new in it is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pytest_regcase.importers.chat_messages import ChatLines
from pytest_regcase.importers.reading import bare
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import TranscriptLine, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, Outcome, RaisedBy, Termination

SpanKind = Literal["model", "tool", "agent", "other"]
_RAISED_IN: Final[Mapping[SpanKind, RaisedBy]] = {"model": "supplier", "tool": "environment"}


@dataclass(frozen=True)
class Span:
    """One span, its content as chat messages where the log holds it."""

    id: str
    parent: str | None
    kind: SpanKind
    origin: str
    """Where it stands in the log."""
    name: str | None = None
    is_open: bool = False
    """It began and never ended."""
    failure: TrialError | None = None
    given: tuple[Mapping[str, Any], ...] = ()
    """A model call's messages, the whole conversation so far."""
    said: Mapping[str, Any] | None = None
    """A model call's reply as a message; None where the log does not hold it."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What `ChatLines` takes beside the words: model, finish, usage, at, offered_tools."""
    call_id: str | None = None
    output: str | None = None
    """A tool's result."""


class SpanTree:
    """The spans of one trace, given in the order in which they began."""

    def __init__(self, spans: Sequence[Span], *, unended_are_in_it: bool = False) -> None:
        """Take the spans; `unended_are_in_it`: the log also holds what never ended, so no parent tells nothing."""
        self._spans = tuple(spans)
        self._by_id = {span.id: span for span in self._spans}
        self._tops = [span for span in self._spans if span.parent not in self._by_id]
        # An agent that ended may have been called from a service whose spans are elsewhere. A model call or a tool
        # has a caller in the same log, unless that never ended.
        orphans = [span for span in self._tops if span.parent is not None and span.kind != "agent"]
        self._cut_off = bool(orphans) and not unended_are_in_it
        self.root = self._tops[0] if len(self._tops) == 1 and not orphans else None
        self.missing: list[str] = []
        if orphans:
            self.missing.append("the span above " + how_many(len(orphans), "other") + " is not in the log")
        calls = [span for span in self._spans if span.kind == "model"]
        self._depth = min((self._agents_above(span) for span in calls), default=0)
        self.calls = tuple(span for span in calls if self._agents_above(span) == self._depth)
        """The model calls of the main conversation, failed and unfinished ones too."""
        if len(calls) > len(self.calls):
            self.missing.append(
                how_many(len(calls) - len(self.calls), "model call")
                + " of agents below the main one left out of the transcript: side calls"
            )
        self.error = self._error()
        self.termination = self._termination()
        self.lines = self._lines()

    @property
    def failing_step(self) -> int | None:
        """The step whose reply failed or never came, else the last one."""
        failed = self.error is not None or self.termination in ("error", "cut-off", "cancelled")
        return failing_step(self.lines, next_reply_failed=failed and reply_was_due(self.lines))

    @property
    def task_text(self) -> str | None:
        """The first user message before the first reply."""
        first = next((line for line in self.lines if line.role == "user" and line.step == 0), None)
        return first.text if first is not None else None

    def _termination(self) -> Termination | None:
        if self._cut_off or (self._tops and self._tops[-1].is_open):
            return "cut-off"
        if self.root is not None:
            return "error" if self.root.failure is not None else "finished"
        if self._tops:
            self.missing.append("how it ended: no span in the log stands for the whole run")
        return None

    def _error(self) -> TrialError | None:
        """Return what the run ended on: what its root says, and who raised it where a span below shows that."""
        top = self.root or (self._tops[-1] if self._tops else None)
        if top is None or top.failure is None:
            return None
        return self._attributed(top, self._raised_at(top))

    def _attributed(self, top: Span, source: Span) -> TrialError | None:
        failure = top.failure
        if failure is None:
            return None
        below = source.failure or failure
        return failure.model_copy(
            update={
                "type": failure.type or below.type,
                "message": failure.message or below.message,
                "traceback": failure.traceback or below.traceback,
                "chain": failure.chain or below.chain,
                "raised_by": _RAISED_IN.get(source.kind, "unknown"),
            }
        )

    def _raised_at(self, span: Span) -> Span:
        """Follow the last failed span below, as long as it tells of the same error."""
        seen = {span.id}
        while True:
            children = [each for each in self._spans if each.parent == span.id and each.id not in seen]
            failed = [each for each in children if each.failure is not None]
            if not failed or not _same(span.failure, failed[-1].failure, is_last=failed[-1] is children[-1]):
                return span
            span = failed[-1]
            seen.add(span.id)

    def _agents_above(self, span: Span) -> int:
        count, seen = 0, {span.id}
        above = self._by_id.get(span.parent or "")
        while above is not None and above.id not in seen:
            seen.add(above.id)
            count += above.kind == "agent"
            above = self._by_id.get(above.parent or "")
        return count

    def _lines(self) -> tuple[TranscriptLine, ...]:
        taken = _Taken()
        main = {span.id for span in self.calls}
        for span in self._spans:
            if span.id in main:
                taken.call(span)
            elif span.kind == "tool" and self._agents_above(span) == self._depth and not span.is_open:
                taken.results.append(span)
        taken.add_results()
        self.missing.extend(taken.missing())
        return tuple(taken.chat.lines)


def _same(above: TrialError | None, below: TrialError | None, *, is_last: bool) -> bool:
    """Say whether an error is that of the span above: it has its words or type, or that span has neither."""
    if above is None or below is None:
        return False
    if above.message is None and above.type is None:
        return is_last
    if above.message is not None and below.message is not None:
        return above.message == below.message
    return above.type is not None and below.type is not None and bare(above.type) == bare(below.type)


class _Taken:
    """The conversation, put together call by call."""

    def __init__(self) -> None:
        self.chat = ChatLines()
        self.results: list[Span] = []
        """Tools that ran since the last call. A later call's messages hold their results as the model saw them."""
        self._known: tuple[Mapping[str, Any], ...] = ()
        self._replies_known = 0
        self._silent = 0
        self._not_continued = 0

    def call(self, span: Span) -> None:
        """Take what is new in a model call's messages, and what came of it."""
        fresh = self._fresh(span.given)
        if any(message.get("role") == "tool" for _, message in fresh):
            self.results = []
        self.add_results()
        for index, message in fresh:
            self.chat.take(message, f"{span.origin} input[{index}]")
        self._replies_known = self.chat.replies
        if span.failure is not None:
            words = span.failure.message or span.failure.type or "error"
            facts = {name: fact for name, fact in span.facts.items() if name in ("at", "model", "offered_tools")}
            self.chat.failed_call(span.origin, words, **facts)
        elif span.said is not None:
            self.chat.take(span.said, span.origin, **span.facts)
        elif not span.is_open:
            self._silent += 1
            self.chat.reply(span.origin, None, **span.facts)

    def add_results(self) -> None:
        """Add the results of the tools that ran since the last call."""
        for span in self.results:
            facts = {"at": span.facts["at"]} if "at" in span.facts else {}
            if span.failure is not None:
                facts["error"] = span.failure.message or span.failure.type or "error"
            self.chat.said(span.origin, "tool", span.output, call_id=span.call_id, **facts)
        self.results = []

    def missing(self) -> list[str]:
        """Return sentences: what of the conversation is not in the lines."""
        found = self.chat.missing
        if self._silent:
            found.append(
                f"the content of {how_many(self._silent, 'reply', 'replies')} is not recorded: the step counts,"
                " and replaying it gives an empty answer"
            )
        if self._not_continued:
            found.append(
                how_many(self._not_continued, "request", "requests")
                + " that did not go on from the request before: what was new in it is"
                " left out"
            )
        return found

    def _fresh(self, given: tuple[Mapping[str, Any], ...]) -> list[tuple[int, Mapping[str, Any]]]:
        """Return what was added since the last request, without the replies that were given in between."""
        if not given:
            return []
        known = len(self._known)
        goes_on = given[:known] == self._known
        self._known = given
        if not goes_on:
            self._not_continued += 1
            return []
        fresh = []
        answered = self.chat.replies - self._replies_known
        for index, message in enumerate(given[known:], known):
            if message.get("role") == "assistant" and answered > 0:
                answered -= 1
            else:
                fresh.append((index, message))
        return fresh


def shown_by_a_trace(tree: SpanTree) -> tuple[Expectation, ...]:
    """Return the expectations that a trace can show. Without content nobody can tell an answer that was made up.

    Not the retries: a client that tries again by itself leaves one span. Nothing of a submission or a patch.
    """
    replies = [line for line in tree.lines if line.is_reply]
    told = all(line.text is not None or line.tool_calls for line in replies)
    return ("log_failure", "no_fabricated_output", "mark_failure") if told else ("log_failure", "mark_failure")


def ref_of_trace(
    tree: SpanTree, *, key: str, task_id: str | None, attempt: int | None, outcome: Outcome = "undetermined"
) -> TrialRef:
    """Return the reference to a trace's trial, with the reason why it is no failed one."""
    failed = outcome == "failed" or tree.error is not None or tree.termination not in (None, "finished")
    why_not, refusal = None, None
    if outcome == "passed":
        why_not, refusal = "a score in it says that it passed", "passed"
    elif not failed:
        why_not = "nothing in the trace says that it failed, and spans hold no pass or fail"
        refusal = "no-sign-of-failure"
    return TrialRef(
        key=key,
        task_id=task_id,
        attempt=attempt,
        termination=tree.termination,
        outcome=outcome,
        error_type=tree.error.type if tree.error is not None else None,
        failed=failed,
        why_not=why_not,
        refusal=refusal,
    )
