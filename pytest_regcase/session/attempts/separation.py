"""Separation of causes over a case's attempts: which rows of the ledger are compared.

Reads records that are handed in, prints nothing. How digests are compared is in recovery.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord, Digests, Said
from pytest_regcase.records.separation import Separation
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.recovery.separation import separate
from pytest_regcase.rules.lifecycle import is_retired
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.plan import agent_name

RUNS_COMPARED = 3
"""The newest of each simulation: a check with both its confirm runs. What an older session logged may come from
another machine."""


def case_separation(
    project: Project,
    loaded: LoadedCase,
    simulations: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
    newest: Callable[[str, str, Mapping[str, Digests]], Mapping[str, Iterable[AttemptRecord]]],
) -> Separation | None:
    """Return the matrix over the case's simulations; None where fewer than two have anything to compare.

    `newest` gives a case's attempts by an agent for each of some scenarios on its digests, the newest first. Only
    those of the present digests count, confirm runs and earlier sessions included: they show what differs by
    chance.
    """
    known = {name: simulations[name] for name in loaded.case.simulation_ids if name in simulations}
    asked = loaded.case.expected_recovery.separates_causes is True
    if is_retired(loaded.case) or len(known) < 2:
        return None
    agent = agent_name(loaded, snapshot)
    present: dict[str, Digests] = {}
    for name, simulation in known.items():
        plan = AttemptPlan(
            key=AttemptKey(case_id=loaded.id, agent=agent, scenario=name),
            kind="simulation",
            hypothesis=simulation.simulation.hypothesis,
        )
        present[name] = attempt_digests(project, loaded, simulation, plan, snapshot)
    said: dict[str, list[Said]] = {}
    for name, attempts in newest(loaded.id, agent, present).items():
        delivered = (each.said for each in attempts if each.said is not None)
        runs = list(islice(delivered, RUNS_COMPARED))
        if runs:
            said[name] = runs[::-1]
    if len(said) < 2 and not asked:
        return None
    classes = {name: each.simulation.hypothesis for name, each in known.items()}
    return separate(classes, said, asked=asked)


def own_texts(project: Project, folder: Path, placeholders: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the texts of one attempt that no other one has, each with what stands for it in a comparison."""
    own = [(each, "<path>") for each in (str(folder), os.path.realpath(folder), str(project.root))]
    own.append((placeholders.get("api_key", ""), "<key>"))
    for name in ("openai_base_url", "anthropic_base_url"):
        url = placeholders.get(name, "")
        own += [(url, f"<{name}>"), (urlsplit(url).path, f"/<{name}>")]
    return tuple((text, stands_for) for text, stands_for in own if len(text) > 1)
