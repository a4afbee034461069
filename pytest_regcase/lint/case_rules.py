"""What is wrong with a case by itself: a handover nobody can act on, a cause nobody has shown, a term that ended.

Pure functions over a case that is loaded; today's date and the known simulations are handed in. Knows no other
version of the case.
"""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Any, Final, cast, get_args

from pytest_regcase.lint.assertions import asserted_cause, named_as_fact
from pytest_regcase.lint.codes import Found
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.records.words import HypothesisClass
from pytest_regcase.rules.lifecycle import is_retired
from pytest_regcase.toml_lines import Key, dotted

_NOBODY: Final = re.compile(r"\W*|(?:todo|tbd|fixme|xxx|n/?a|none|nobody|no ?one|unknown|someone|owner)\W*", re.I)
_NOTHING: Final = re.compile(r"\W*|(?:todo|tbd|fixme|xxx|n/?a|none|nothing|unknown|later|next)\W*", re.I)
_CLASSES: Final = frozenset(get_args(HypothesisClass))


def handover_problems(data: Mapping[str, Any]) -> Iterator[Found]:
    """Yield what is missing in the ``[handover]`` of a case file as tomllib reads it; a placeholder says nothing.

    It takes no record: a file without an owner does not become one.
    """
    handover = data.get("handover", {})
    if not isinstance(handover, Mapping):
        return
    if _says_nothing(handover.get("owner", ""), _NOBODY):
        yield Found(
            "owner-missing",
            ("handover", "owner"),
            "nobody owns this case; write in handover.owner who acts on it: a person, a team or a rota",
        )
    if _says_nothing(handover.get("next_decision", ""), _NOTHING):
        yield Found(
            "next-decision-missing",
            ("handover", "next_decision"),
            "nothing says what is to be decided next; write in handover.next_decision what somebody who was not"
            " there is to look at, and what it decides",
        )


def case_problems(
    case: RegressionCase, *, today: date, simulations: Mapping[str, HypothesisClass]
) -> Iterator[Found]:
    """Yield what a linter can see in one case; `simulations` are the known ones with their class.

    Of a retired case only what it asserts is looked at: nothing of it is run any more.
    """
    yield from _asserted(case, simulations)
    if is_retired(case):
        return
    yield from _unknown_simulations(case, simulations)
    if case.quarantine is not None and case.quarantine.expires < today:
        yield Found(
            "quarantine-expired",
            ("quarantine", "expires"),
            f"the quarantine ended on {case.quarantine.expires}; take [quarantine] out, or decide what becomes of"
            " the case",
        )
    if case.fix and case.baseline is None:
        yield Found(
            "fix-without-baseline",
            ("fix", len(case.fix) - 1),
            "a fix is claimed, and no [baseline] says how often the case failed before; write its failures, trials"
            " and kind, or clean runs show no improvement",
        )


def _says_nothing(value: object, placeholder: re.Pattern[str]) -> bool:
    return isinstance(value, str) and placeholder.fullmatch(value.strip()) is not None


def _asserted(case: RegressionCase, simulations: Mapping[str, HypothesisClass]) -> Iterator[Found]:
    carried = _carried(case, simulations)
    for key, text in _notes(case):
        claim = asserted_cause(text)
        if claim is None or (carried and not claim.classes - carried):
            continue
        shown = f", which supports {_listed(carried)}" if carried else ""
        yield Found(
            "cause-asserted",
            key,
            f'{dotted(key)} says why it failed ("{claim.words}"), and the evidence does not carry that{shown}; say'
            " what was seen, ask it as a question, or cite a log with `regcase evidence`",
        )
    for index, each in enumerate(case.hypotheses):
        if named_as_fact(each.id):
            yield Found(
                "cause-asserted",
                ("hypotheses", index, "id"),
                f'the hypothesis "{each.id}" is named as if it were true; name what it assumes. Whether that is'
                " true, [[evidence]] says",
            )


def _notes(case: RegressionCase) -> Iterator[tuple[Key, str]]:
    """Yield every text in which a person writes freely. What was observed is sealed, and is no note."""
    if case.title is not None:
        yield ("title",), case.title
    for index, question in enumerate(case.unresolved_questions):
        yield ("unresolved_questions", index), question
    if case.handover is not None:
        yield ("handover", "next_decision"), case.handover.next_decision
    if case.quarantine is not None:
        yield ("quarantine", "reason"), case.quarantine.reason
    for index, fix in enumerate(case.fix):
        if fix.note is not None:
            yield ("fix", index, "note"), fix.note
    for table in ("amendments", "reopened", "retired"):
        for index, each in enumerate(getattr(case, table)):
            yield (table, index, "why"), each.why


def _carried(case: RegressionCase, simulations: Mapping[str, HypothesisClass]) -> frozenset[HypothesisClass]:
    """Return the classes of the one hypothesis that the evidence confirms; none where nothing is confirmed."""
    if case.computed_cause_status != "confirmed":
        return frozenset()
    supported = {each.hypothesis for each in case.evidence if each.withdrawn is None and each.stance == "supports"}
    found: set[HypothesisClass] = set()
    for each in case.hypotheses:
        if each.id in supported:
            found |= {simulations[name] for name in each.simulations if name in simulations}
            if each.id in _CLASSES:
                found.add(cast("HypothesisClass", each.id))
    return frozenset(found)


def _unknown_simulations(case: RegressionCase, known: Collection[str]) -> Iterator[Found]:
    for index, hypothesis in enumerate(case.hypotheses):
        for place, name in enumerate(hypothesis.simulations):
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                meant = f'did you mean "{near[0]}"?' if near else "`regcase simulations` lists those there are"
                yield Found(
                    "unknown-simulation",
                    ("hypotheses", index, "simulations", place),
                    f'there is no simulation "{name}"; {meant}',
                )


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
