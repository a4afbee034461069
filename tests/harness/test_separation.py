"""A real SDK, with and without a wrapper that hides what it raises: which causes the agent's logs tell apart."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_simulations
from pytest_regcase.records.separation import Separation
from pytest_regcase.recovery.separation import hidden_causes, separate
from pytest_regcase.session.reviews.catalogue import catalogue
from tests.session.attempt_project import make_project

AGENT = Path(__file__).with_name("hiding_agent.py")
RAISED = ("auth-rejected-v1", "oom-server-error-v1", "deadline-no-answer-v1")
EMPTY = "hidden-rejection-v1"
PLACES = 'submission = "{out_dir}/answer.json#/patch"\nanswer = "{out_dir}/answer.json#/answer"\n'


def separation(root: Path, python: str, mode: str, *scenarios: str) -> Separation:
    """Run the agent once under each simulation, and compare what it logged."""
    # The SDK gives up by itself, after some seconds; an agent that is ended says other things.
    made = make_project(
        root, (python, str(AGENT), mode), simulations=scenarios, places=PLACES, deadline_seconds=45
    )
    catalogue(made.project)  # loads every fault: not for the first time in several threads at once
    with ThreadPoolExecutor(4) as pool:
        records = dict(zip(scenarios, pool.map(made.run, scenarios), strict=True))
    assert all(each.wire.delivered for each in records.values()), {each.says for each in records.values()}
    known = load_simulations(made.project)
    classes = {name: known[name].simulation.hypothesis for name in scenarios}
    return separate(classes, {name: [each.said] for name, each in records.items() if each.said is not None})


@pytest.mark.harness
def test_a_wrapper_that_hides_what_the_sdk_raises_tells_no_cause(tmp_path: Path, harness_python: str) -> None:
    found = separation(tmp_path, harness_python, "hide", *RAISED, EMPTY)
    assert hidden_causes(found) == (RAISED,)
    # Nothing is raised for the empty answer: the wrapper hands on "" there, and null else.
    assert {each.told_apart for each in found.pairs if EMPTY in (each.first, each.second)} == {"message"}


@pytest.mark.harness
def test_the_plain_loop_tells_them_apart_by_what_it_prints(tmp_path: Path, harness_python: str) -> None:
    found = separation(tmp_path, harness_python, "plain", *RAISED)
    assert {each.told_apart for each in found.pairs} == {"message"}
    assert "stderr" in found.counted
