"""What several test folders need: the shared samples, a Python with real harnesses, a clean environment."""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.supplier.engines import FakeDocker

pytest_plugins = ["pytester"]
collect_ignore_glob: list[str] = []
if importlib.util.find_spec("hypothesis") is None:
    # `pytest --regcase` runs the cases where the package alone is installed; the tests need more than that.
    collect_ignore_glob.append("*")
else:
    from hypothesis import HealthCheck, settings

    # A loaded machine must not fail a property by how long its data take, and a run must be repeatable.
    settings.register_profile(
        "regcase", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("regcase")
    with contextlib.suppress(ImportError):
        # Else examples are also made of constants of those modules of ours that earlier tests happened to load.
        providers = importlib.import_module("hypothesis.internal.conjecture.providers")
        no_constants = getattr(providers, "_local_constants", None)
        if no_constants is not None:
            vars(providers)["_get_local_constants"] = lambda: no_constants

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_report_header() -> str | None:
    """Say so when the tests are left out."""
    return "tests: left out, the `test` extra is not installed" if collect_ignore_glob else None


@pytest.fixture(autouse=True)
def _no_settings_of_the_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the runner's own settings out of every test."""
    for name in ("REGCASE_LEDGER", "PYTEST_ADDOPTS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def _remembered() -> Iterator[dict[str, ModuleType]]:
    modules: dict[str, ModuleType] = {}
    yield modules
    sys.modules.update(modules)


@pytest.fixture
def pytester(_remembered: dict[str, ModuleType], pytester: pytest.Pytester) -> Iterator[pytest.Pytester]:
    """pytest's own, but Python keeps what a test loaded.

    Pytester has every module forgotten at the test's end that was not there at its start. Loaded again by a later
    test it has a second class of every name: a driver then raises errors that nobody catches.
    """
    yield pytester
    _remembered.update(loaded_outside_of(pytester.path))


def loaded_outside_of(folder: Path) -> dict[str, ModuleType]:
    """Return the modules that Python holds, but for those that were loaded from `folder`."""
    return {
        name: module
        for name, module in list(sys.modules.items())
        if not any(Path(place).is_relative_to(folder) for place in _places(module))
    }


def _places(module: ModuleType) -> list[str]:
    file = getattr(module, "__file__", None)
    return [file] if file else [str(each) for each in getattr(module, "__path__", ())]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_trials() -> Path:
    """The folder of real failed trials, which lies beside a developer's checkout."""
    folder = REPOSITORY.parent / "shared" / "trials"
    if not folder.is_dir():
        pytest.skip("the folder of real trials (../shared/trials) is not here")
    return folder


@pytest.fixture(scope="session")
def shared_reference() -> Path:
    """The folder of reference values, which lies beside a developer's checkout."""
    folder = REPOSITORY.parent / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip("the folder of reference values (../shared/reference) is not here")
    return folder


def need_harness(module: str) -> None:
    """Skip with the reason when a public agent is not installed; fail where CI promised it."""
    if importlib.util.find_spec(module) is None:
        reason = f"needs the `harness` extra: {module} is not installed"
        if os.environ.get("REGCASE_REQUIRE_HARNESS"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture
def fake_docker(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> "FakeDocker":
    """A `docker` command in front of any real one; it answers nothing until it is told to."""
    from tests.supplier.engines import FakeDocker

    return FakeDocker(tmp_path_factory.mktemp("engine"), monkeypatch)


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that gives an agent a clock of its own, built once; skips where it cannot be."""
    from pytest_regcase.agents import clock
    from pytest_regcase.errors import UsageRefused

    try:
        return clock.library(tmp_path_factory.mktemp("clock"))
    except UsageRefused as refused:
        pytest.skip(refused.text.splitlines()[0])


@pytest.fixture(scope="session")
def harness_python() -> str:
    """A Python that has the openai SDK, mini-swe-agent and Inspect: this one, or the test is skipped."""
    for module in ("openai", "minisweagent", "inspect_ai"):
        need_harness(module)
    return sys.executable
