"""Options, markers, the `regcase` fixture: the only module of ours that a plain pytest run imports.

Imports pytest and the standard library and nothing else at the top; all the rest loads under ``--regcase``. It has
no ini keys: they would break ``--strict-config`` where the plugin is switched off.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_regcase.records.attempt import AttemptRecord
    from pytest_regcase.records.case import RegressionCase

SKIPPED_WITHOUT_REGCASE = "written for a regression case; runs with --regcase"

_WITHOUT_A_RUN = ("help", "version", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; all start with ``--regcase``."""
    group = parser.getgroup("regcase", "regression cases of failed agent trials")
    group.addoption(
        "--regcase",
        action="store_true",
        help="Run the regression cases and decide: exit 1 when the gate fails or is unproven.",
    )
    group.addoption(
        "--regcase-profile",
        choices=("pull-request", "nightly", "release"),
        default="pull-request",
        help="What runs and what is red (default: pull-request).",
    )
    group.addoption(
        "--regcase-live",
        metavar="N",
        type=_count,
        default=0,
        help="Make at most N new live attempts a case that has a claimed fix. They cost model calls.",
    )
    group.addoption(
        "--regcase-agent",
        metavar="NAME",
        default=None,
        help="Run every case with this agent of [tool.regcase.agents].",
    )
    group.addoption(
        "--regcase-shard",
        metavar="i/n",
        default=None,
        help="Run the i-th of n parts of the cases; `regcase gate` decides over all parts of a run.",
    )
    group.addoption(
        "--regcase-max-minutes",
        metavar="M",
        type=_minutes,
        default=None,
        help="Run the cases that fit into M minutes, changed ones first, then those not run for longest.",
    )
    group.addoption(
        "--regcase-with-tests",
        action="store_true",
        help="Run the ordinary tests too; without it they are deselected.",
    )
    group.addoption(
        "--regcase-report",
        metavar="PATH",
        action="append",
        default=[],
        help="Write the decision to a file; its suffix says how (.json, .md). May be given more than once.",
    )


class RegcaseHooks:
    """The hooks for a project's own conftest.py (that of the root folder) or plugin; see `pytest_addhooks`."""

    @pytest.hookspec(firstresult=True)
    def pytest_regcase_agent(self, case: "RegressionCase", name: str) -> "Mapping[str, object] | None":
        """Return the entry of the agent `name`, in the place of ``[tool.regcase.agents.NAME]``; None: no change.

        Called for every case, before anything is planned and in every process. One agent has one entry a session.
        """

    @pytest.hookspec
    def pytest_regcase_expectations(self, case: "RegressionCase") -> "Mapping[str, object] | None":
        """Return keys of ``[expected_recovery]`` that ask for more than the case does; None: no change.

        Less is refused. What is asked for is part of the case's digest: its attempts are counted for that alone.
        """

    @pytest.hookspec
    def pytest_regcase_attempt_finished(self, record: "AttemptRecord") -> None:
        """Take note of an attempt, once it is stored; called in the controller of pytest-xdist alone.

        An exception is shown and changes nothing.
        """


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let projects have our hooks, with and without ``--regcase``."""
    pluginmanager.add_hookspecs(RegcaseHooks)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the marker always, everything else only for a run with ``--regcase``.

    First of all plugins, because pytest-xdist reads ``--max-worker-restart`` when it is configured.
    """
    config.addinivalue_line(
        "markers",
        "regcase(case_id): the test runs an agent for this regression case; it is skipped without --regcase.",
    )
    if not config.getoption("regcase") or any(config.getoption(name, None) for name in _WITHOUT_A_RUN):
        return
    from pytest_regcase.pytest_items.start import start

    start(config)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Keep pytest out of a case's recorded files: a recorded work tree may hold tests of its own."""
    if collection_path.name == "recorded" and (collection_path.parent / "case.toml").is_file():
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip every test marked `regcase` in a run without ``--regcase``, with the reason."""
    if config.getoption("regcase"):
        return
    for item in items:
        if item.get_closest_marker("regcase") is not None:
            item.add_marker(pytest.mark.skip(reason=SKIPPED_WITHOUT_REGCASE))


@pytest.fixture
def regcase(request: pytest.FixtureRequest) -> Iterator[Any]:
    """One attempt at the case that the mark names: a `pytest_regcase.RegcaseFixture`, under ``--regcase``.

    It lives here, where it is always loaded: without the option a marked test is skipped, and is no error.
    """
    if request.node.get_closest_marker("regcase") is None:
        pytest.fail(
            'the fixture `regcase` needs the mark that says which case: @pytest.mark.regcase("CASE-ID")',
            pytrace=False,
        )
    attempt = getattr(request, "param", None)
    if attempt is None:
        pytest.skip(SKIPPED_WITHOUT_REGCASE)
    with attempt.begun(request.node) as fixture:
        yield fixture


def _count(text: str) -> int:
    """Return `text` as a number of attempts; argparse turns the ValueError into a usage error."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


_count.__name__ = "number of attempts"


def _minutes(text: str) -> float:
    """Return `text` as a number of minutes; argparse turns the ValueError into a usage error."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number


_minutes.__name__ = "number of minutes"
