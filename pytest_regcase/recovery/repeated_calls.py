"""Repeated calls: what the agent did with its tools before the fault, and did once more after it.

Knows the agent's transcript and which replies asked for what. Must not import the expectations.
"""

from collections import Counter
from typing import NamedTuple

from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import ToolCall, TranscriptLine
from pytest_regcase.recovery.fabrication import Provenance
from pytest_regcase.recovery.failure_lines import quote_of
from pytest_regcase.recovery.given_texts import canonical_call, complete_replies, transcript_answers


class Repeated(NamedTuple):
    """A tool call that was done again."""

    place: str
    quote: str


class CallsDone(NamedTuple):
    """What the transcript shows of the tool calls around the fault."""

    before: int
    """Calls of the replies before the fault."""
    repeated: Repeated | None


def calls_done(observed: Observed) -> CallsDone:
    """Return how many calls were done before the first faulted request, and the first one done again after it.

    Done again is a further result for a call of before, or the same call once more in a later answer. What a
    healthy reply after the fault asks for at a step of its own is the model's decision and no repetition; the
    calls of an earlier step that the agent asks for again, as after a restart, are one.
    """
    steps = observed.artefact.steps if observed.artefact is not None else ()
    first = Provenance(observed, transcript_answers(observed)).first
    answers = [number for number, line in enumerate(steps) if line.is_reply][first:]
    replies = complete_replies(observed)
    before = answers[: sum(not reply.after_fault for reply in replies)]
    done = Counter(canonical_call(call) for number in before for call in steps[number].tool_calls)
    if not done:
        return CallsDone(0, None)
    last_step = max(reply.step for reply in replies if not reply.after_fault)
    asked = Counter(
        canonical_call(call) for reply in replies if reply.step > last_step for call in reply.tool_calls
    )
    own = Counter(call.id for number in answers for call in steps[number].tool_calls)
    by_id = {call.id: call for number in before for call in steps[number].tool_calls if call.id is not None}
    for number, line in enumerate(steps):
        if line.role == "tool" and line.tool_call_id in by_id:
            own[line.tool_call_id] -= 1
            if own[line.tool_call_id] < 0 and number > before[-1]:
                return CallsDone(done.total(), _repeated(line, number, by_id[line.tool_call_id]))
        elif line.is_reply and number > before[-1]:
            for call in line.tool_calls:
                told = canonical_call(call)
                asked[told] -= 1
                if told in done and asked[told] < 0:
                    return CallsDone(done.total(), _repeated(line, number, call))
    return CallsDone(done.total(), None)


def _repeated(line: TranscriptLine, number: int, call: ToolCall) -> Repeated:
    return Repeated(line.origin or f"transcript line {number + 1}", quote_of(f"{call.name}({call.arguments})"))
