"""Separation of causes: which simulations of a case an agent's own logs tell apart, and what that means.

Knows digests of what was logged, run by run. Must not import the judge: it judges a case, never an attempt.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from pytest_regcase.records.attempt import Finding, Said
from pytest_regcase.records.separation import ComparedSimulation, Pair, Separation, ToldApart
from pytest_regcase.records.words import FindingStatus, HypothesisClass

_COUNTED = ("artefact", "stderr", "stdout", "log", "files")


def separate(
    simulations: Mapping[str, HypothesisClass], said: Mapping[str, Sequence[Said]], *, asked: bool = False
) -> Separation:
    """Return the matrix over `simulations`, in their order; `said` holds what each run of one logged.

    A simulation without a run that proved something is not compared. `asked`: the case has the expectation
    ``separates_causes``, and the finding is in the result.
    """
    compared = [
        ComparedSimulation(name=name, hypothesis=hypothesis, runs=len(runs), noisy=_several(runs, "message"))
        for name, hypothesis in simulations.items()
        if (runs := said.get(name, ()))
    ]
    runs_of = {each.name: said[each.name] for each in compared}
    counted = {word for runs in runs_of.values() for each in runs for word in each.counted}
    pairs = [
        Pair(first=a.name, second=b.name, told_apart=told_apart(runs_of[a.name], runs_of[b.name]))
        for a, b in combinations(compared, 2)
    ]
    separation = Separation(
        simulations=tuple(compared),
        not_compared=tuple(name for name in simulations if name not in runs_of),
        counted=tuple(word for word in _COUNTED if word in counted),
        pairs=tuple(pairs),
        by_artefact=sum(
            not {one.artefact for one in runs_of[each.first]} & {one.artefact for one in runs_of[each.second]}
            for each in pairs
        ),
    )
    return separation.model_copy(update={"finding": _finding(separation)}) if asked else separation


def told_apart(first: Sequence[Said], second: Sequence[Said]) -> ToldApart:
    """Say how the runs of two simulations are told apart; two that agree in one pair of runs are not."""
    if {each.whole for each in first} & {each.whole for each in second}:
        return "indistinguishable"
    if _several(first, "message") or _several(second, "message"):
        return "noisy"
    if first[0].message != second[0].message:
        return "message"
    return "noisy" if _several(first, "whole") or _several(second, "whole") else "stack-trace"


def groups(separation: Separation, told: ToldApart) -> tuple[tuple[str, ...], ...]:
    """Return the simulations that hang together by pairs of that kind, each once, in the case's order."""
    left = [each.name for each in separation.simulations]
    linked = [(each.first, each.second) for each in separation.pairs if each.told_apart == told]
    found: list[tuple[str, ...]] = []
    while left:
        group = {left[0]}
        while more := {name for pair in linked if group & {*pair} for name in pair} - group:
            group |= more
        if len(group) > 1:
            found.append(tuple(name for name in left if name in group))
        left = [name for name in left if name not in group]
    return tuple(found)


def hidden_causes(separation: Separation) -> tuple[tuple[str, ...], ...]:
    """Return the groups that cannot be told apart though they are of different hypothesis classes."""
    classes = {each.name: each.hypothesis for each in separation.simulations}
    return tuple(
        group for group in groups(separation, "indistinguishable") if len({classes[name] for name in group}) > 1
    )


def sentences(separation: Separation) -> tuple[str, ...]:
    """Return what the matrix says, for a person: what is to be fixed first, then what it rests on.

    None where there are no two simulations to compare.
    """
    if not separation.pairs:
        return ()
    classes = {each.name: each.hypothesis for each in separation.simulations}
    hidden = hidden_causes(separation)
    cannot = ", nor ".join(_listed(group, classes) for group in hidden)
    said = [f"its logs cannot separate {cannot}; fix the logging first"] if hidden else []
    said += [
        f"its logs say the same of {_listed(group, {})}, all of class {classes[group[0]]}"
        for group in groups(separation, "indistinguishable")
        if group not in hidden
    ]
    said += [f"only a stack trace tells {_listed(group, {})} apart" for group in groups(separation, "stack-trace")]
    noisy = [each for each in separation.pairs if each.told_apart == "noisy"]
    if noisy:
        said.append(f"nothing is said of {_pairs(len(noisy))}: two runs of the same simulation already differ")
    return (*said, _rests_on(separation))


def _rests_on(separation: Separation) -> str:
    by_message = sum(each.told_apart == "message" for each in separation.pairs)
    runs = [each.runs for each in separation.simulations]
    each_run = f"{min(runs)} runs or more of each"
    if max(runs) == 1:
        each_run = "one run of each, so a difference may be chance"
    elif min(runs) == 1:
        each_run = "one run of some, so a difference may be chance"
    compared = ", ".join(separation.counted) or "nothing was logged"
    alone = ""
    if (
        separation.by_artefact < len(separation.pairs)
        and "artefact" in separation.counted
        and len(separation.counted) > 1
    ):
        alone = f" (the artefact alone tells {separation.by_artefact} apart)"
    return (
        f"{by_message} of {_pairs(len(separation.pairs))} told apart by message; compared: {compared}{alone};"
        f" {each_run}"
    )


def _finding(separation: Separation) -> Finding:
    hidden = hidden_causes(separation)
    classes = {each.name: each.hypothesis for each in separation.simulations}
    status: FindingStatus
    if hidden:
        status, says = (
            "broken",
            f"the logs cannot separate {'; nor '.join(_listed(each, classes) for each in hidden)}",
        )
    elif separation.not_compared:
        status, says = "not-observable", f"nothing is known of {_listed(separation.not_compared, {})}"
    elif len({*classes.values()}) < 2:
        status, says = "not-applicable", "the case's simulations are of one hypothesis class"
    elif any(
        each.told_apart == "noisy" and classes[each.first] != classes[each.second] for each in separation.pairs
    ):
        status, says = "not-observable", "two runs of the same simulation already differ"
    else:
        status, says = "kept", "the logs tell simulations of different classes apart"
    return Finding(expectation="separates_causes", status=status, says=says)


def _several(runs: Sequence[Said], what: str) -> bool:
    return len({getattr(each, what) for each in runs}) > 1


def _pairs(number: int) -> str:
    return f"{number} pair{'' if number == 1 else 's'}"


def _listed(names: Sequence[str], classes: Mapping[str, HypothesisClass]) -> str:
    told = [f"{name} ({classes[name]})" if name in classes else name for name in names]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
