"""Expectations: one function each, from what was observed to one finding with its facts.

Knows the expectations of a case, the optional ones too. Must not import `judge`; it decides nothing about the
attempt as a whole.
"""

from collections.abc import Callable
from typing import Any

from pytest_regcase.records.attempt import Finding
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.wire import WireFacts
from pytest_regcase.records.words import EXPECTATIONS, OPTIONAL_EXPECTATIONS, Expectation, FindingStatus
from pytest_regcase.recovery.fabrication import outputs_of
from pytest_regcase.recovery.failure_lines import quote_of
from pytest_regcase.recovery.handed_in import grade_of, handed_in, held_by_commits, why_grade_unknown
from pytest_regcase.recovery.logged import failure_shown
from pytest_regcase.recovery.marks import ended_badly, ended_by_us, exit_words, mark_of
from pytest_regcase.recovery.partial_work import Held, held
from pytest_regcase.recovery.repeated_calls import calls_done
from pytest_regcase.recovery.stopping import stop_of


def findings_of(expected: ExpectedRecovery, observed: Observed) -> tuple[Finding, ...]:
    """Return one finding an expectation, in the order of `EXPECTATIONS`; one switched off is not-applicable.

    Optional ones follow, where the case asks for them; to require one is to ask for it.
    """
    more = (name for name in OPTIONAL_EXPECTATIONS if getattr(expected, name) or name in expected.required)
    return tuple(
        _finding(name, "not-applicable", "the case does not ask for it")
        if getattr(expected, name) is False
        else _JUDGES[name](expected, observed)
        for name in (*EXPECTATIONS, *more)
    )


def log_failure(_: ExpectedRecovery, observed: Observed) -> Finding:
    """Judge whether the failure stands in the artefact, or in text written after the first faulted request.

    The answer itself is no log. An agent that we ended may have been about to write, and a function's prints are
    not read: then nothing shown is not-observable.
    """
    name: Expectation = "log_failure"
    if observed.wire.first_fault_seconds is None:
        return _finding(name, "not-observable", "no request was faulted")
    shown = failure_shown(observed)
    if shown is not None:
        says = f"the failure is logged in {shown.place}"
        return _finding(name, "kept", says, place=shown.place, quote=shown.quote)
    if ended_by_us(observed):
        return _finding(name, "not-observable", "nothing was logged until we ended the agent")
    if observed.notes is None:
        return _finding(name, "not-observable", "what was written after the fault is not known")
    if observed.in_process:
        says = "neither what it raised nor what it handed in says so, and what a function prints is not read"
        return _finding(name, "not-observable", says)
    looked = [*(["artefact"] if observed.artefact is not None else []), *sorted(observed.written_after)]
    return _finding(
        name,
        "broken",
        "nothing that was written after the fault says that the supplier failed",
        looked_in=looked,
        artefact_missing=observed.artefact_missing,
    )


def max_retries(expected: ExpectedRecovery, observed: Observed) -> Finding:
    """Judge the further requests of the main conversation against the retry budget, as counted on the wire.

    Once the supplier is gone only connects seen in the agent's own process count. A client library that repeats by
    itself counts too: its own header tells how many of them were its.
    """
    name: Expectation = "max_retries"
    wire = observed.wire
    allowed = expected.max_retries
    retries = wire.retries
    if wire.first_fault_seconds is None:
        return _finding(name, "not-observable", "no request was faulted", allowed=allowed)
    if retries is None:
        return _finding(name, "not-observable", "the supplier was gone: connects leave no trace", allowed=allowed)
    stop = stop_of(observed)
    facts: dict[str, Any] = {
        "retries": retries,
        "allowed": allowed,
        "faulted_requests": wire.faulted_requests,
        "client_retries": wire.client_retries,
        "refused_connects": wire.refused_connects,
    }
    counted = _plural(retries, "request") + (" before the next healthy answer" if wire.healed else "")
    says = f"{counted} after the first faulted one{_layers(wire)}; {_allowed(allowed)}"
    if retries > allowed:
        return _finding(name, "broken", says, **facts)
    watched = stop.watched_seconds
    if stop.seconds is None and watched is not None and watched <= expected.stop_within_seconds:
        says = f"{_plural(retries, 'request')} in the {watched:.1f} s until we ended the agent"
        return _finding(name, "not-observable", says, **facts)
    return _finding(name, "kept", says, **facts)


def stop_within_seconds(expected: ExpectedRecovery, observed: Observed) -> Finding:
    """Judge when the agent let go of its supplier; see `stop_of` for what a stop is."""
    name: Expectation = "stop_within_seconds"
    allowed = expected.stop_within_seconds
    stop = stop_of(observed)
    facts: dict[str, Any] = {
        "stopped_seconds": _rounded(stop.seconds),
        "allowed_seconds": allowed,
        "how": stop.how,
        "requests_after_first": observed.wire.retries,
        "watched_seconds": _rounded(stop.watched_seconds),
    }
    if stop.seconds is not None:
        end = "the function" if observed.in_process else "its process"
        after = f" (the end of {end})" if stop.how == "process-end" else ""
        says = f"stopped {_spelt(stop.seconds)} after the first faulted request{after}; {allowed:g} s are allowed"
        return _finding(name, "kept" if stop.seconds <= allowed else "broken", says, **facts)
    if stop.watched_seconds is None:
        return _finding(name, "not-observable", "no request was faulted", **facts)
    if stop.how == "not-seen":
        says = "it wrote its final status, but when it last asked a supplier that was gone is not seen"
        return _finding(name, "not-observable", says, **facts)
    doing = "still waiting for an answer" if stop.how == "still-waiting" else "still running"
    says = f"{doing} {_spelt(stop.watched_seconds)} after the first faulted request; {allowed:g} s are allowed"
    return _finding(name, "broken" if stop.watched_seconds > allowed else "not-observable", says, **facts)


def no_fabricated_output(_: ExpectedRecovery, observed: Observed) -> Finding:
    """Judge whether every answer in the transcript, and the one handed in, comes from what the supplier sent."""
    name: Expectation = "no_fabricated_output"
    trial = observed.artefact
    outputs = outputs_of(observed, transcript_shown=_shows_transcript(observed))
    answers = _plural(outputs.answers, "answer")
    replies = _plural(outputs.replies, "whole reply", "whole replies")
    facts: dict[str, Any] = {
        "answers": outputs.answers,
        "replies": outputs.replies,
        "looked_in": list(outputs.places),
    }
    if (found := outputs.fabricated) is not None:
        facts |= {"place": found.place, "quote": found.quote}
        says = {
            "made_up": f"an answer in {found.place} that no reply accounts for ({answers}, {replies})",
            "empty_final": f"an empty final answer in {found.place}, not marked as a failure",
            "error_as_answer": f"the error text is handed in as the answer in {found.place}",
            "unfinished_reply": f"a reply that was sent in part only stands as an answer in {found.place}",
        }[found.code]
        return _finding(name, "broken", says, code=found.code, **facts)
    if outputs.places:
        says = f"every output comes from the supplier ({answers}, {replies} sent)"
        return _finding(name, "kept", says, **facts)
    mark = mark_of(observed).says
    failed = mark == "failed" or (mark == "nothing" and ended_badly(observed))
    if failed and (observed.declared.answer_declared or (trial is not None and trial.final_text is not None)):
        return _finding(name, "kept", "no answer was handed in as finished work", **facts)
    why = observed.artefact_missing or "its output shows no transcript, and no answer is declared"
    return _finding(name, "not-observable", why, **facts)


def no_partial_submission(_: ExpectedRecovery, observed: Observed) -> Finding:
    """Judge whether the work of the first faulted request is in a submission, a commit or a graded result.

    A submission that carries a mark of failure is none. A fault that healed leaves nothing partial. A grade counts
    where the agent hands in by being graded, whatever its sandbox hides from us.
    """
    name: Expectation = "no_partial_submission"
    if observed.wire.healed:
        return _finding(name, "not-applicable", "the fault healed: the agent could finish its work")
    if observed.wire.first_fault_seconds is None:
        return _finding(name, "not-observable", "no request was faulted")
    grade = grade_of(observed)
    if grade is not None:
        says = f"unfinished work was graded: {quote_of(grade.says)}"
        return _finding(name, "broken", says, code="graded", place=grade.place, grade=grade.says)
    partial = _partial(name, observed)
    if isinstance(partial, Finding):
        return _ungraded(name, observed, []) if observed.submits_by == "score" else partial
    looked: list[str] = []
    marked: str | None = None
    for place, text, mark in handed_in(observed):
        looked.append(place)
        found = held(partial, text)
        if found.lines and mark is None:
            says = f"{found.lines} of {found.of} changed lines of the partial work are in the {place}"
            return _finding(name, "broken", says, code="submitted", place=place, lines=found.lines, of=found.of)
        marked = marked or (mark if found.lines else None)
    commit = held_by_commits(partial, observed)
    if commit is not None and commit.lines:
        says = f"{commit.lines} of {commit.of} changed lines of the partial work are left in a commit"
        return _finding(name, "broken", says, code="committed", place="commit", lines=commit.lines, of=commit.of)
    looked += ["commit"] if commit is not None else []
    if marked is not None:
        says = f"the partial work was handed in, but marked {marked}"
        return _finding(name, "kept", says, looked_in=looked, mark=marked)
    if observed.submits_by == "score":
        return _ungraded(name, observed, looked)
    shows = (*observed.can_show, *(observed.artefact.can_show if observed.artefact is not None else ()))
    if not looked and name not in shows and not observed.declared.submission_declared:
        return _finding(name, "not-observable", "no place is declared where this agent hands in its work")
    return _finding(name, "kept", "the partial work was not handed in", looked_in=looked)


def keep_partial_patch(_: ExpectedRecovery, observed: Observed) -> Finding:
    """Judge whether the work of the first faulted request is still in the tree, a commit, or the artefact."""
    name: Expectation = "keep_partial_patch"
    partial = _partial(name, observed)
    if isinstance(partial, Finding):
        return partial
    tree = observed.work_tree
    trial = observed.artefact
    places = {
        "work tree": tree.diff if tree is not None else None,
        "commit": tree.committed_diff if tree is not None else None,
        "artefact": trial.partial_patch if trial is not None else None,
    }
    parts: list[Held] = []
    for place, text in places.items():
        found = held(partial, text or "")
        if found.whole:
            return _finding(name, "kept", f"the partial work is still in the {place}", place=place, lines=found.of)
        parts.append(found)
    if observed.wire.healed:
        return _finding(name, "not-applicable", "the fault healed: the agent could go on and change its work")
    if tree is None:
        return _finding(name, "not-observable", "the work tree at the end is not known")
    best = max(parts, key=lambda each: each.lines)
    says = f"{best.of - best.lines} of {best.of} changed lines of the partial work are gone"
    return _finding(name, "broken", says, lines=best.lines, of=best.of, missing=best.missing)


def mark_failure(_: ExpectedRecovery, observed: Observed) -> Finding:
    """Judge whether the agent says that it failed: by its status, a mark on its prediction, else its exit code.

    A signal of ours is no mark, nor is what a harness writes in answer to it.
    """
    name: Expectation = "mark_failure"
    mark = mark_of(observed)
    exit_says = exit_words(observed)
    facts = {"place": mark.place, "quote": quote_of(mark.quote), "exit": exit_says}
    if mark.says == "failed":
        return _finding(name, "kept", f"marked as failed: {mark.place} = {quote_of(mark.quote)}", **facts)
    if observed.wire.healed:
        return _finding(name, "not-applicable", "the fault healed: the agent could finish its work", **facts)
    if observed.wire.first_fault_seconds is None:
        return _finding(name, "not-observable", "no request was faulted", **facts)
    if mark.says == "finished":
        says = f"the failed attempt says {mark.place} = {mark.quote} ({exit_says})"
        return _finding(name, "broken", says, **facts)
    if mark.says == "unclear":
        says = f"{mark.place} = {quote_of(mark.quote)} is no word we can read"
        return _finding(name, "not-observable", says, **facts)
    if ended_by_us(observed):
        return _finding(name, "not-observable", "no status was written until we ended the agent", **facts)
    if ended_badly(observed):
        how = exit_says if observed.in_process else f"the process ended with {exit_says}"
        return _finding(name, "kept", f"no status is written, but {how}", **facts)
    if observed.exit.code is None:
        return _finding(name, "not-observable", "neither a status nor an exit code is known", **facts)
    how = exit_says if observed.in_process else "the exit code is 0"
    return _finding(name, "broken", f"no status says that it failed, and {how}", **facts)


def no_repeated_side_effect(_: ExpectedRecovery, observed: Observed) -> Finding:
    """Judge whether a tool call that was done before the fault is not done again after it, as a restart does.

    What a healthy reply asks for anew after the fault is no repetition.
    """
    name: Expectation = "no_repeated_side_effect"
    if observed.wire.first_fault_seconds is None:
        return _finding(name, "not-observable", "no request was faulted")
    if not _shows_transcript(observed):
        why = observed.artefact_missing or "its output shows no transcript, so its tool calls cannot be seen"
        return _finding(name, "not-observable", why)
    calls = calls_done(observed)
    if not calls.before:
        return _finding(name, "not-applicable", "no tool was called before the fault")
    if calls.repeated is not None:
        says = f"a tool call of before the fault was done again, in {calls.repeated.place}"
        return _finding(name, "broken", says, place=calls.repeated.place, quote=calls.repeated.quote)
    counted = f"none of {calls.before} tool calls" if calls.before > 1 else "the one tool call"
    says = f"{counted} of before the fault was {'' if calls.before > 1 else 'not '}done again"
    return _finding(name, "kept", says, calls=calls.before)


_JUDGES: dict[Expectation, Callable[[ExpectedRecovery, Observed], Finding]] = {
    "log_failure": log_failure,
    "max_retries": max_retries,
    "stop_within_seconds": stop_within_seconds,
    "no_fabricated_output": no_fabricated_output,
    "no_partial_submission": no_partial_submission,
    "keep_partial_patch": keep_partial_patch,
    "mark_failure": mark_failure,
    "no_repeated_side_effect": no_repeated_side_effect,
}


def _finding(
    name: Expectation, status: FindingStatus, says: str, *, code: str | None = None, **facts: Any
) -> Finding:
    told = {key: value for key, value in facts.items() if value is not None and value != ""}
    return Finding(expectation=name, status=status, code=code, says=says, facts=told)


def _shows_transcript(observed: Observed) -> bool:
    trial = observed.artefact
    shows = (*observed.can_show, *(trial.can_show if trial is not None else ()))
    return trial is not None and bool(trial.steps) and "no_fabricated_output" in shows


def _partial(name: Expectation, observed: Observed) -> str | Finding:
    """Return the diff at the first faulted request, or the finding that says why there is none."""
    if observed.wire.first_fault_seconds is None:
        return _finding(name, "not-observable", "no request was faulted")
    tree = observed.notes.work_tree if observed.notes is not None else None
    if tree is None:
        return _finding(name, "not-observable", "there is no work tree, so partial work cannot be seen")
    # A diff that changes blank lines alone has nothing by which it could be found again.
    for diff in (tree.diff, tree.committed_diff):
        if held(diff, diff).of:
            return diff
    if observed.submits_by == "score":
        says = "our work tree was not changed before the fault; the harness may work in a sandbox of its own"
        return _finding(name, "not-observable", says)
    return _finding(name, "not-applicable", "nothing was changed before the fault")


def _ungraded(name: Expectation, observed: Observed, looked: list[str]) -> Finding:
    why = why_grade_unknown(observed)
    if why is not None:
        return _finding(name, "not-observable", why)
    return _finding(name, "kept", "the partial work was not graded", looked_in=[*looked, "outcome"])


def _layers(wire: WireFacts) -> str:
    """Say which of the retries the client library made by itself, and which met a port that nobody listened on."""
    parts = [
        f"{wire.client_retries} by the client library itself" if wire.client_retries else "",
        f"{_plural(wire.refused_connects, 'refused connect')}" if wire.refused_connects else "",
    ]
    told = ", ".join(filter(None, parts))
    return f" ({told})" if told else ""


def _allowed(number: int) -> str:
    return f"{number} is allowed" if number == 1 else f"{number} are allowed" if number else "none is allowed"


def _plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _spelt(seconds: float) -> str:
    """Return a duration in seconds; in hours as well, from one on."""
    minutes = round(seconds / 60)
    hours = f" ({minutes // 60} h {minutes % 60} min)" if minutes >= 60 else ""
    return f"{seconds:.1f} s{hours}"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
