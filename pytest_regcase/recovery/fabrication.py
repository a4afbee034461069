"""Fabrication: which outputs of the agent no reply of the supplier accounts for.

First by count (answers against whole replies sent), then by content, with the harness's own rendering learnt from
the replies before the fault. Must not import the expectations.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import ToolCall
from pytest_regcase.records.wire import SentReply
from pytest_regcase.recovery.failure_lines import quote_of, says_failure
from pytest_regcase.recovery.given_texts import (
    Answer,
    canonical_call,
    complete_replies,
    given_texts,
    json_keys,
    leaves,
    pieces,
    transcript_answers,
)
from pytest_regcase.recovery.marks import handed_in_as_finished, mark_of

SUBSTRING_CHARACTERS = 20
"""A shorter part of a known text proves nothing: a made-up word would pass as one."""

_TELLING_KEY = 8
"""Characters of a key that a call may be named after: shorter ones stand in many names."""

FabricationCode = Literal["made_up", "empty_final", "error_as_answer", "unfinished_reply"]


class Fabricated(NamedTuple):
    """One output that nothing accounts for."""

    code: FabricationCode
    place: str
    quote: str


class Outputs(NamedTuple):
    """What was looked at, and the first fabricated output."""

    answers: int
    """Answers in the transcript that hold something."""
    replies: int
    """Whole replies that the supplier sent in the main conversation."""
    fabricated: Fabricated | None
    places: tuple[str, ...]
    """Where was looked; empty when nothing was there to look at."""


def outputs_of(observed: Observed, *, transcript_shown: bool) -> Outputs:
    """Check every answer of the transcript (where the format shows one) and the answer handed in at the end.

    What a marked failure leaves in its answer is a report, not an answer; an empty reply that was really sent does
    not count; an empty final answer is judged by `empty_final` alone.
    """
    replies = complete_replies(observed)
    answers = transcript_answers(observed) if transcript_shown else ()
    handed_in = handed_in_as_finished(observed)
    provenance = Provenance(observed, answers)
    told = [answer for answer in answers[provenance.first :] if not answer.empty]
    if told and mark_of(observed).says == "failed" and _reports_failure(observed, told[-1].text or ""):
        told.pop()
    finals = _finals(observed) if handed_in else []
    places = (("transcript",) if transcript_shown else ()) + tuple(final.place for final in finals)

    def outputs(fabricated: Fabricated | None) -> Outputs:
        return Outputs(len(told), len(replies), fabricated, places)

    found = _first(told, provenance)
    if found is None and len(told) > len(replies):
        found = told[-1]
    if found is not None:
        code = provenance.code_of(found, final=handed_in and found is told[-1])
        return outputs(Fabricated(code, found.place, _quote(found)))
    found = _first([final for final in finals if not final.empty], provenance)
    if found is not None:
        return outputs(Fabricated(provenance.code_of(found, final=True), found.place, _quote(found)))
    # The place where an answer is handed in decides; only without one does the transcript's last answer.
    closing = finals or ([*answers[-1:]] if handed_in else [])
    faulted = observed.wire.first_fault_seconds is not None and not observed.wire.healed
    if faulted and closing and all(final.empty for final in closing):
        return outputs(Fabricated("empty_final", closing[0].place, ""))
    return outputs(None)


class _Sent:
    """What one reply of the supplier is made of, worked out once."""

    def __init__(self, reply: SentReply) -> None:
        parts = [*pieces(reply)]
        self.reply = reply
        self._calls = _calls_of(reply)
        texts = leaves(reply.text) if reply.text else ()
        self._units = {
            _normal(each)
            for each in (*texts, *(one for call in reply.tool_calls for one in leaves(call.arguments)))
        }
        self._units.discard("")
        self._pieces = sorted({_normal(part) for part in parts}, key=lambda text: (-len(text), text))
        self._lines = {_normal(line) for part in parts for line in part.splitlines()}
        self._keys = [key for key in json_keys(reply.text or "") if len(key) >= _TELLING_KEY]

    def is_told_by(self, answer: Answer) -> bool:
        """Say whether `answer` is this reply, or holds each of its texts, whatever form the harness gives them."""
        if answer.calls and self._calls:
            if _calls_of(answer) == self._calls:
                return True
        elif self.reply.text and _normal(answer.text or "") == _normal(self.reply.text):
            return True
        told = "\n".join([_normal(answer.text or ""), *(text for call in answer.calls for text in _texts(call))])
        return bool(self._units) and all(unit in told for unit in self._units)

    def holds(self, text: str) -> bool:
        """Say whether `text` is a piece of the reply, a line of one, or a long enough part."""
        if text in self._lines or text in self._pieces:
            return True
        return len(text) >= SUBSTRING_CHARACTERS and any(text in piece for piece in self._pieces)

    def names(self, call: ToolCall) -> bool:
        """Say whether a call is named after a key of the reply's JSON, as ``mark_task_complete`` is."""
        return any(key in call.name for key in self._keys)

    def residue(self, told: str) -> str:
        """Return what stays of `told` without the pieces of the reply: the harness's template, or new words."""
        rest = told
        for piece in self._pieces:
            if len(piece) >= 3:
                rest = rest.replace(piece, " ")
        return _normal(rest)


class Provenance:
    """Says whether an answer comes from what the supplier sent or the agent was given."""

    def __init__(self, observed: Observed, answers: tuple[Answer, ...]) -> None:
        self._observed = observed
        self._replies = [_Sent(reply) for reply in complete_replies(observed)]
        self._given = [text for text in map(_normal, given_texts(observed)) if text]
        lines = (_normal(line) for text in given_texts(observed) for line in text.splitlines())
        self._exact = {*self._given, *lines}
        self._calls = {canonical_call(call) for sent in self._replies for call in sent.reply.tool_calls}
        self._residues = {""}
        self._rewritten: set[str] = set()
        """Names of calls that the harness makes of a reply by itself (of its JSON, or of another tool's call)."""
        self._constants: set[str] = set()
        """What it adds to them each time."""
        self.first = self._first_answer(answers)
        """Index of the first answer that is no example of the prompt."""
        before = [sent for sent in self._replies if not sent.reply.after_fault]
        self._learn([*_paired(answers[self.first :], before)])

    def accounts_for(self, answer: Answer) -> bool:
        """Say whether the text and every call of `answer` were sent, given, or are a rendering of a sent reply."""
        return self._knows_text(answer.text or "") and all(map(self._knows_call, answer.calls))

    def code_of(self, answer: Answer, *, final: bool) -> FabricationCode:
        """Name the way in which `answer`, which nothing accounts for, came about."""
        text = _normal(answer.text or "")
        for reply in self._observed.wire.replies:
            if reply.unfinished and (_extends(text, _normal(reply.text or "")) or _shares_call(answer, reply)):
                return "unfinished_reply"
        if final and not answer.calls and _reports_failure(self._observed, answer.text or ""):
            return "error_as_answer"
        return "made_up"

    def _knows_text(self, text: str) -> bool:
        told = _normal(text)
        if not told or (told in self._exact and not self._is_error(told)):
            return True
        if len(told) >= SUBSTRING_CHARACTERS and any(told in given for given in self._given):
            return not self._is_error(told)
        return any(sent.residue(told) in self._residues for sent in self._replies)

    def _is_error(self, told: str) -> bool:
        """Say whether `told` is a text of the fault itself that reports an error."""
        return any(told in _normal(text) and says_failure(text) for text in self._observed.wire.fault_texts)

    def _knows_call(self, call: ToolCall) -> bool:
        if canonical_call(call) in self._calls:
            return True
        if not self._rewritten:
            return False
        told = _texts(call) - self._constants
        return any(
            all(map(sent.holds, told))
            for sent in self._replies
            if call.name in self._rewritten or sent.names(call)
        )

    def _first_answer(self, answers: tuple[Answer, ...]) -> int:
        """Pass over assistant messages of the prompt (few-shot examples): they precede the first real reply."""
        for number, answer in enumerate(answers):
            if self._replies and self._replies[0].is_told_by(answer):
                return number
        return 0

    def _learn(self, pairs: list[tuple[Answer, _Sent]]) -> None:
        """Learn how the harness writes a reply down; one that writes any reply word for word has no template.

        What stays of an answer without its reply is a template where it holds all of the reply and is the first
        that does, or where it stays of several answers. Anything else may be new words.
        """
        told = [
            (_normal(answer.text or ""), answer, sent) for answer, sent in pairs if (answer.text or "").strip()
        ]
        residues = [(sent.residue(text), text, sent.is_told_by(answer)) for text, answer, sent in told]
        if all(residue for residue, _, _ in residues):
            templates = [(residue, whole) for residue, text, whole in residues if residue != text]
            counts = Counter(residue for residue, _ in templates)
            first = [residue for residue, whole in templates if whole][:1]
            self._residues |= {*first, *(residue for residue, count in counts.items() if count > 1)}
        for answer, sent in pairs:
            for call in answer.calls:
                texts = _texts(call)
                own = set(filter(sent.holds, texts))
                if own and canonical_call(call) not in self._calls:
                    self._rewritten.add(call.name)
                    self._constants |= texts - own


def _paired(answers: Iterable[Answer], replies: list[_Sent]) -> Iterator[tuple[Answer, _Sent]]:
    """Pair each answer with the next reply that it tells; with the next one at all where it tells none."""
    at = 0
    for answer in answers:
        found = next((number for number in range(at, len(replies)) if replies[number].is_told_by(answer)), at)
        if found == len(replies):
            return
        yield answer, replies[found]
        at = found + 1


def _finals(observed: Observed) -> list[Answer]:
    finals = []
    if observed.declared.answer_declared:
        finals.append(Answer("answer", observed.declared.answer))
    if (trial := observed.artefact) is not None:
        if trial.final_text is not None:
            finals.append(Answer("final_text", trial.final_text))
        if trial.submission is not None and trial.submission.text is not None:
            finals.append(Answer("submission", trial.submission.text))
    return finals


def _first(answers: list[Answer], provenance: Provenance) -> Answer | None:
    return next((answer for answer in answers if not provenance.accounts_for(answer)), None)


def _reports_failure(observed: Observed, text: str) -> bool:
    told = _normal(text)
    error = observed.artefact.error if observed.artefact is not None else None
    message = _normal((error.message if error is not None else None) or "")
    if len(message) >= SUBSTRING_CHARACTERS and message in told:
        return True
    return bool(told) and (told == message or says_failure(text.strip().splitlines()[0]))


def _shares_call(answer: Answer, reply: SentReply) -> bool:
    return not _calls_of(answer).isdisjoint(_calls_of(reply))


def _calls_of(one: Answer | SentReply) -> set[tuple[str, str]]:
    return set(map(canonical_call, one.calls if isinstance(one, Answer) else one.tool_calls))


def _texts(call: ToolCall) -> set[str]:
    return {_normal(leaf) for leaf in leaves(call.arguments)} - {""}


def _extends(text: str, part: str) -> bool:
    """Say whether `text` is or continues the unfinished `part`, or is cut from it."""
    if not text or not part:
        return False
    long_enough = min(len(text), len(part)) >= SUBSTRING_CHARACTERS
    return text == part or (long_enough and (text.startswith(part) or part.startswith(text)))


def _quote(answer: Answer) -> str:
    return quote_of(" ".join([answer.text or "", *(f"{call.name}({call.arguments})" for call in answer.calls)]))


def _normal(text: str) -> str:
    return " ".join(text.split())
