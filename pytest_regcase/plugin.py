"""Options, markers, the `regcase` fixture: the only module of ours that a plain pytest run imports.

Imports pytest and the standard library and nothing else at the top; all the rest loads under ``--regcase``. It has
no ini keys: they would break ``--strict-config`` where the plugin is switched off.
"""

from pathlib import Path
from typing import NoReturn

import pytest

SKIPPED_WITHOUT_REGCASE = "written for a regression case; runs with --regcase"
SKIPPED_UNDER_REGCASE = "cases written as test functions are not run by this version"

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
        "--regcase-with-tests",
        action="store_true",
        help="Run the ordinary tests too; without it they are deselected.",
    )
    group.addoption(
        "--regcase-report",
        metavar="PATH",
        default=None,
        help="Write the decision to a file; its suffix says how (.json).",
    )


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
    """Skip every test marked `regcase`, with the reason."""
    reason = SKIPPED_UNDER_REGCASE if config.getoption("regcase") else SKIPPED_WITHOUT_REGCASE
    for item in items:
        if item.get_closest_marker("regcase") is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def regcase(request: pytest.FixtureRequest) -> NoReturn:
    """Stand for the attempt in a test function marked `regcase`; this version skips such tests.

    It lives here, where it is always loaded: a marked test is then skipped with the reason and not an error.
    """
    if request.node.get_closest_marker("regcase") is None:
        pytest.fail(
            'the fixture `regcase` needs the mark that says which case: @pytest.mark.regcase("CASE-ID")',
            pytrace=False,
        )
    pytest.skip(SKIPPED_UNDER_REGCASE if request.config.getoption("regcase") else SKIPPED_WITHOUT_REGCASE)


def _count(text: str) -> int:
    """Return `text` as a number of attempts; argparse turns the ValueError into a usage error."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


_count.__name__ = "number of attempts"
