"""Said: what an agent's logs say of a failure, as digests that can be compared.

Reads the artefact, and the text that was written after the first faulted request. Must not import the judge.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from pytest_regcase.records.attempt import Said
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import TranscriptLine, Trial
from pytest_regcase.recovery.logged import read_as_artefact
from pytest_regcase.recovery.run_details import without_run_details
from pytest_regcase.recovery.stack_traces import without_frames

LIMIT_CHARACTERS = 512 * 1024
"""Of all that was written after the fault, in the order stderr, stdout, declared log, other files."""
_ORDER = {"stderr": 0, "stdout": 1, "log": 2}


def said_of(observed: Observed, own: Sequence[tuple[str, str]] = ()) -> Said | None:
    """Return what the logs say; None where no request was faulted.

    Compared are the error, failed calls, and whatever the artefact shows after the last reply before the fault, as
    the importer reads it; and the text of stderr, stdout and further files. `own` are texts of this one run, each
    with what stands for it.
    """
    if observed.wire.first_fault_seconds is None:
        return None
    short = _texts(_artefact(observed, whole=False), own)
    whole = _texts(_artefact(observed, whole=True), own)
    counted = ["artefact"] if whole else []
    artefact = digest_of(whole)
    left = LIMIT_CHARACTERS
    for name in sorted(observed.written_after, key=lambda each: (_ORDER.get(each, 3), each)):
        if read_as_artefact(name, observed) or left <= 0:
            continue
        text = observed.written_after[name][:left]
        left -= len(text)
        for each in _texts([(name, text)], own):
            kind = name if name in _ORDER else "files"
            counted += [] if kind in counted else [kind]
            whole.append(each)
            short.append([name, without_frames(each[1])])
    return Said(message=digest_of(short), whole=digest_of(whole), artefact=artefact, counted=tuple(counted))


def _texts(parts: Iterable[tuple[str, str]], own: Sequence[tuple[str, str]]) -> list[list[str]]:
    normal = ([place, without_run_details(text, own)] for place, text in parts)
    return [each for each in normal if each[1]]


def _artefact(observed: Observed, *, whole: bool) -> Iterator[tuple[str, str]]:
    trial = observed.artefact
    if trial is not None:
        yield from _of_trial(trial, observed, whole=whole)
    declared = observed.declared
    for place, asked, text in (
        ("answer", declared.answer_declared, declared.answer),
        ("status", declared.status_declared, declared.status),
    ):
        if asked:
            yield place, _spelt(text, whole=whole)


def _of_trial(trial: Trial, observed: Observed, *, whole: bool) -> Iterator[tuple[str, str]]:
    if (error := trial.error) is not None and error.raised_by != "grader":
        for text in (error.type, error.message):
            yield "error", text or ""
        if whole:
            yield "error", error.traceback or ""
            for link in error.chain:
                yield "error", json.dumps(link.to_sparse(), sort_keys=True)
    for line in _after_the_fault(trial, observed):
        yield "transcript", _line(line, whole=whole)
    for place, one in (("termination", trial.termination), ("labels", " ".join(sorted(trial.labels)))):
        yield place, one or ""
    if trial.final_text is not None:
        yield "answer", _spelt(trial.final_text, whole=whole)
    if trial.submission is not None:
        yield "submission", json.dumps([trial.submission.text, trial.submission.mark])


def _after_the_fault(trial: Trial, observed: Observed) -> Iterator[TranscriptLine]:
    """Yield failed calls, and what follows the last reply before the fault; tool results left out."""
    before = sum(not reply.after_fault and not reply.unfinished for reply in observed.wire.replies)
    replies = 0
    for line in trial.steps:
        replies += line.is_reply
        if line.error is not None or (
            line.role != "tool" and replies + (not line.is_reply) > before and line.step > 0
        ):
            yield line


def _line(line: TranscriptLine, *, whole: bool) -> str:
    calls = [[call.name, call.arguments] for call in line.tool_calls]
    error = line.error if whole or line.error is None else without_frames(line.error)
    return json.dumps([line.role, line.text, line.finish, calls, error], ensure_ascii=False)


def _spelt(text: str | None, *, whole: bool) -> str:
    """Return a text so that none and an empty one differ: a wrapper that hides a failure writes the first."""
    return json.dumps(text if whole or text is None else without_frames(text), ensure_ascii=False)
