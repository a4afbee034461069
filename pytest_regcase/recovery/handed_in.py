"""Handed in: everything by which unfinished work may leave the agent's hands, and whether a grader took it.

Knows submissions, predictions, commits and grades. Must not import the expectations: it says what is there.
"""

import re
from typing import NamedTuple

from pytest_regcase.records.observed import Observed
from pytest_regcase.recovery.partial_work import Held, held

_GRADE_LABEL = re.compile(r"[\w-]+:(?:score|reward):")
"""How importers spell a grade that a harness recorded and does not count itself, such as an invalid reward."""


class HandedIn(NamedTuple):
    """One thing that the agent handed in."""

    place: str
    text: str
    mark: str | None
    """Its own mark of a failure."""


class Grade(NamedTuple):
    """What a grader said of the work."""

    place: str
    """``outcome``, or ``label`` where only the harness's own words tell."""
    says: str


def handed_in(observed: Observed) -> list[HandedIn]:
    """Return every submission and declared answer; commits and grades are asked for by themselves."""
    found: list[HandedIn] = []
    submission = observed.artefact.submission if observed.artefact is not None else None
    if submission is not None:
        text = "\n".join(part for part in (submission.patch, submission.text) if part)
        found.append(HandedIn("submission", text, submission.mark))
    if observed.declared.submission is not None:
        status = observed.declared.status
        mark = status if status == "agent_error" else None
        found.append(HandedIn("submission", observed.declared.submission, mark))
    if observed.declared.answer is not None:
        found.append(HandedIn("answer", observed.declared.answer, None))
    return found


def grade_of(observed: Observed) -> Grade | None:
    """Return the grade of an agent whose work is handed in by being graded; None: it is not, or none is recorded.

    A grade that the harness itself calls invalid is one: the unfinished work was graded all the same.
    """
    trial = observed.artefact
    if observed.submits_by != "score" or trial is None:
        return None
    if trial.outcome != "undetermined":
        return Grade("outcome", trial.outcome)
    label = next((each for each in trial.labels if _GRADE_LABEL.match(each)), None)
    return None if label is None else Grade("label", label)


def why_grade_unknown(observed: Observed) -> str | None:
    """Say why a missing grade does not show that the work was not graded; None where it shows just that."""
    trial = observed.artefact
    if trial is None:
        return observed.artefact_missing or "its output was not read, so a grade cannot be seen"
    if trial.termination in (None, "cut-off"):
        return "its log breaks off before a grade could stand in it"
    if "no_partial_submission" not in (*observed.can_show, *trial.can_show):
        return f"a log of the format {trial.format} does not show whether the work was graded"
    return None


def held_by_commits(partial: str, observed: Observed) -> Held | None:
    """Return how much of the partial work commits hold; None where no commit counts as handing in.

    Commits count where the agent hands in by commit, or made one after the fault.
    """
    then = observed.notes.work_tree if observed.notes is not None else None
    now = observed.work_tree
    if then is None or now is None or (observed.submits_by != "commit" and now.head == then.head):
        return None
    return held(partial, now.committed_diff)
