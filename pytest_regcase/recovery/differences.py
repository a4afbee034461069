"""What today's agent does otherwise than the recorded one, in a few words. Pure; a difference never judges."""

from collections import Counter
from collections.abc import Iterable

from pytest_regcase.records.wire import Difference


def told(differences: Iterable[Difference]) -> tuple[str, ...]:
    """Return one sentence a kind of difference, for a record and the summary.

    What followed the fault is left out: how an agent picks up again is the judge's matter, and no drift.
    """
    each = tuple(differences)
    counts = Counter(one.kind for one in each)
    results, forgotten, again = (counts[kind] for kind in ("tool-result", "forgotten-step", "asked-again"))
    sentences = [one.says for one in each if one.kind == "tools"]
    if results:
        sentences.append(f"{results} tool result{_s(results)} differ{'s' * (results == 1)} from the recording")
    if forgotten:
        sentences.append(f"the agent no longer shows the calls of {forgotten} earlier step{_s(forgotten)}")
    if again:
        sentences.append(f"{again} step{_s(again)} {'was' if again == 1 else 'were'} asked for more than once")
    return tuple(sentences)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
