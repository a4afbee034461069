"""Logged: whether, and where, the agent's output shows that the supplier failed.

Knows the artefact and the text that was written after the fault. Must not import the expectations.
"""

from typing import NamedTuple

from pytest_regcase.records.observed import Observed
from pytest_regcase.recovery.failure_lines import failure_in, quote_of
from pytest_regcase.recovery.given_texts import answer_texts, given_texts


class Shown(NamedTuple):
    """The words that show the failure, and their place."""

    place: str
    quote: str


def failure_shown(observed: Observed) -> Shown | None:
    """Look in the artefact, then in what was written after the first faulted request; None: shown nowhere.

    Text before the fault says nothing, nor does text that repeats the task, a tool result or the answer. A
    grader's error is none of the agent's.
    """
    return _in_artefact(observed) or _in_text(observed)


def _in_artefact(observed: Observed) -> Shown | None:
    trial = observed.artefact
    if trial is None:
        return None
    if trial.error is not None and trial.error.raised_by != "grader":
        words = ": ".join(part for part in (trial.error.type, trial.error.message) if part)
        return Shown("the artefact's error", quote_of(words))
    for line in trial.steps:
        if line.error is not None:
            return Shown(f"the artefact's transcript ({line.origin or f'step {line.step}'})", quote_of(line.error))
    return Shown("the artefact's status", "error") if trial.termination == "error" else None


def _in_text(observed: Observed) -> Shown | None:
    given = tuple(given_texts(observed))
    answers = tuple(answer_texts(observed))
    for name in sorted(observed.written_after, key=_stderr_first):
        if read_as_artefact(name, observed):
            continue  # its structured reading decides: a transcript quotes too much
        known = given if name == "stderr" else (*given, *answers)
        quote = failure_in(observed.written_after[name], known)
        if quote is not None:
            return Shown(name, quote)
    return None


def read_as_artefact(name: str, observed: Observed) -> bool:
    """Say whether an importer has read the file of that name: its structured reading decides."""
    sources = observed.artefact.source_digests if observed.artefact is not None else {}
    return any(name == source or name.endswith(f"/{source}") for source in sources)


def _stderr_first(name: str) -> tuple[int, str]:
    return {"stderr": 0, "stdout": 1}.get(name, 2), name
