"""What a citation names, and whether it may stand beside those that a case has. Pure."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from pytest_regcase.errors import ClaimRefused, UnknownName, UsageRefused, did_you_mean
from pytest_regcase.records.case import Evidence, RegressionCase

LINES_LIMIT: Final = 200
QUOTE_LIMIT: Final = 16 * 1024
"""Characters of the cited lines, that a case file takes in."""
_PLACE: Final = re.compile(r"(?P<file>.+):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL)


class Place(NamedTuple):
    """Lines of a file, from 1, both ends included."""

    file: str
    first: int
    last: int

    @property
    def lines(self) -> str:
        """As a citation has it: ``12`` or ``12-15``."""
        return lines_text(self.first, self.last)


def lines_text(first: int, last: int) -> str:
    """Return the lines as `parse_place` reads them."""
    return str(first) if first == last else f"{first}-{last}"


def parse_place(text: str) -> Place:
    """Return what ``FILE:12`` or ``FILE:12-15`` names.

    Raises:
        UsageRefused: it is neither, ends before it begins, or names more lines than a case file takes in.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise UsageRefused(
            f"Couldn't cite {text!r}: it names no lines.\n"
            "Write FILE:LINES, as in kern.log:120 or kern.log:120-123."
        )
    first = int(found["first"])
    last = int(found["last"] or first)
    if not 1 <= first <= last:
        raise UsageRefused(
            f"Couldn't cite {text!r}: lines count from 1, and the last one is not before the first.\n"
            "Write FILE:LINES, as in kern.log:120-123."
        )
    if last - first >= LINES_LIMIT:
        raise UsageRefused(
            f"Couldn't cite {text!r}: {last - first + 1} lines; at most {LINES_LIMIT} go into a case file.\n"
            "Cite the lines that show it, in several citations if need be."
        )
    return Place(found["file"], first, last)


def check_hypothesis(case: RegressionCase, hypothesis: str) -> None:
    """Refuse a hypothesis that the case has not.

    Raises:
        UnknownName: it has not; those that it has are listed.
    """
    known = [each.id for each in case.hypotheses]
    if hypothesis not in known:
        raise UnknownName(
            f"Couldn't cite for {hypothesis!r}: the case has no hypothesis of that id.\n"
            f"{did_you_mean(hypothesis, known)}It has: {', '.join(known) or 'none'}."
            " Add one to the case file as [[hypotheses]] first."
        )


def check_exclusive(case: RegressionCase, hypothesis: str) -> None:
    """Refuse support for a hypothesis while another one, which excludes it, is supported.

    Two may coincide where either names the other in `may_coincide_with`.

    Raises:
        ClaimRefused: another one is supported.
    """
    coincide = {each.id: each.may_coincide_with for each in case.hypotheses}
    for each in standing(case.evidence):
        other = each.hypothesis
        if each.stance != "supports" or other == hypothesis:
            continue
        if other not in coincide[hypothesis] and hypothesis not in coincide[other]:
            raise ClaimRefused(
                f"Couldn't cite in support of {hypothesis}: {each.id} supports {other}, and the case does not say"
                f" that both can be true.\nWithdraw {each.id} first (--withdraw {each.id} --why ...), or write"
                " may_coincide_with at one of the two hypotheses.",
                slug="exclusive",
            )


def check_not_there(case: RegressionCase, citation: Evidence) -> None:
    """Refuse a citation that stands already.

    Raises:
        UsageRefused: it does.
    """
    same = (citation.hypothesis, citation.stance, citation.digest, citation.lines)
    for each in standing(case.evidence):
        if (each.hypothesis, each.stance, each.digest, each.lines) == same:
            raise UsageRefused(
                f"Couldn't cite {citation.file}:{citation.lines}: it is cited already, as {each.id}."
            )


def next_id(case: RegressionCase) -> str:
    """Return the id of the next citation: ``ev-1`` and so on, never one that was used."""
    used = {each.id for each in case.evidence}
    number = len(used) + 1
    while f"ev-{number}" in used:
        number += 1
    return f"ev-{number}"


def standing(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the citations that are not withdrawn."""
    return [each for each in evidence if each.withdrawn is None]
