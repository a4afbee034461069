"""Reads pytest's own settings: what was asked for, what contradicts it, which paths were given.

Reads `config.option` and never the argument vector, so that addopts and PYTEST_ADDOPTS count too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

from pytest_regcase.records.words import Profile

RERUNFAILURES = ("rerunfailures", "pytest_rerunfailures")
"""The plugin's name by entry point, and by ``-p``."""
NEVER_RESTARTS = ("loadscope", "loadfile", "loadgroup")
"""xdist's schedulers that hang after a worker crash when they may replace the worker."""


@dataclass(frozen=True)
class Asked:
    """The options of a gate run."""

    profile: Profile
    live_new: int
    agent: str | None
    shard: str | None
    max_minutes: float | None
    with_tests: bool
    reports: tuple[Path, ...]
    """Absolute, one a ``--regcase-report``."""


def read_options(config: pytest.Config) -> Asked:
    """Return what was asked for.

    Raises:
        pytest.UsageError: it contradicts itself, or needs what this version has not.
    """
    profile = next(each for each in get_args(Profile) if each == config.getoption("regcase_profile"))
    live_new = config.getoption("regcase_live")
    shard = _shard(config.getoption("regcase_shard"))
    max_minutes = config.getoption("regcase_max_minutes")
    if profile == "release":
        asked = {"--regcase-live": live_new, "--regcase-shard": shard, "--regcase-max-minutes": max_minutes}
        for option, value in asked.items():
            if value:
                raise pytest.UsageError(
                    f"{option}={value} cannot be combined with --regcase-profile=release, which runs nothing: it"
                    " decides over what the ledger holds. Leave it out."
                )
    if live_new and profile == "pull-request":
        raise pytest.UsageError(
            f"--regcase-live={live_new} needs --regcase-profile=nightly: pull-request makes no model call."
        )
    return Asked(
        profile=profile,
        live_new=live_new,
        agent=config.getoption("regcase_agent"),
        shard=shard,
        max_minutes=max_minutes,
        with_tests=config.getoption("regcase_with_tests"),
        reports=tuple(config.invocation_params.dir / each for each in config.getoption("regcase_report")),
    )


def _shard(text: str | None) -> str | None:
    """Return ``i/n`` in its one spelling."""
    from pytest_regcase.session.planning.shards import read_shard

    try:
        return None if text is None else str(read_shard(text))
    except ValueError as error:
        raise pytest.UsageError(
            f"--regcase-shard: {error}. --regcase-shard=1/3 runs the first of three parts of the cases."
        ) from error


def refuse_conflicts(config: pytest.Config) -> None:
    """Raise for options of other plugins under which attempts would not be what they are counted as.

    Raises:
        pytest.UsageError: it names the option and what to do instead.
    """
    if config.getoption("force_reruns", None) is not None:
        raise pytest.UsageError(
            "--force-reruns cannot be combined with --regcase: it would repeat live attempts until they pass."
            " Leave it out; --regcase repeats a failed check by itself."
        )
    if config.getoption("reruns_mode", None) == "append":
        raise pytest.UsageError(
            "--reruns-mode=append cannot be combined with --regcase: it would add tries to a check."
            " Leave it out; --regcase repeats a failed check by itself."
        )
    if config.getoption("dist", "no") == "each":
        raise pytest.UsageError(
            "--dist=each cannot be combined with --regcase: every worker would make the same attempts."
            " Use --dist=load."
        )


def keep_crashed_workers_down(config: pytest.Config) -> None:
    """Tell xdist not to replace a crashed worker where its scheduler would hang; a limit of the user's stays."""
    if config.getoption("dist", "no") in NEVER_RESTARTS and config.getoption("maxworkerrestart", None) is None:
        config.option.maxworkerrestart = "0"


def confirms(config: pytest.Config) -> bool:
    """Say whether a failed check can be repeated: pytest-rerunfailures is there, and no debugger holds the run."""
    loaded = any(config.pluginmanager.hasplugin(name) for name in RERUNFAILURES)
    return loaded and not config.getoption("usepdb", False)


def decides(config: pytest.Config) -> bool:
    """Say whether this run makes attempts at all; one that only collects or sets up decides nothing."""
    return not any(config.getoption(name, False) for name in ("collectonly", "setuponly", "setupplan"))


def is_worker(config: pytest.Config) -> bool:
    """Say whether this process is a worker of pytest-xdist."""
    return hasattr(config, "workerinput")


def given_paths(config: pytest.Config) -> tuple[Path, ...] | None:
    """Return the paths on the command line, node ids cut to their file; None where none were given."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return None
    cut = (each.split("::", 1)[0] for each in config.args)
    return tuple(config.invocation_params.dir / each for each in cut)


def add_case_folders(config: pytest.Config, folders: tuple[Path, ...]) -> None:
    """Add the case folders to what pytest collects, unless paths were given.

    Every process does this itself: workers of xdist parse the original arguments.
    """
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    config.args = [*config.args, *(str(each) for each in folders if each.is_dir())]


def shrinking_options(config: pytest.Config) -> list[str]:
    """Return the options in force that leave checks out or repeat them, as they are typed, for the header."""
    found: list[str] = []
    for dest, typed in (("keyword", "-k"), ("markexpr", "-m"), ("lf", "--lf"), ("stepwise", "--stepwise")):
        if config.getoption(dest, None):
            found.append(typed)
    maxfail = config.getoption("maxfail", 0)
    if maxfail:
        found.append("-x" if maxfail == 1 else f"--maxfail={maxfail}")
    for dest, typed in (("deselect", "--deselect"), ("ignore", "--ignore"), ("ignore_glob", "--ignore-glob")):
        if config.getoption(dest, None):
            found.append(typed)
    if config.getoption("reruns", None):
        found.append("--reruns (overruled for cases)")
    if config.getoption("fail_on_flaky", False):
        found.append("--fail-on-flaky")
    return found
