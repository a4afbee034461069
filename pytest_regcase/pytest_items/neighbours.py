"""Other plugins beside which attempts would break, or not be what they are counted as: refused at the start.

Each is told with what to type instead; a neighbour that only looks on is never refused.
"""

import pytest

from pytest_regcase.pytest_items import settings

_READ_THE_MARK = {
    "flaky": ("flaky", "flaky.flaky_pytest_plugin"),
    "pytest-retry": ("pytest-retry", "pytest_retry.retry_plugin"),
}
"""Plugins that take the mark `flaky` for their own: name for ``-p no:NAME`` -> names they are registered by."""

_OPTIONS = {
    "flake_finder_enable": (
        "--flake-finder",
        "it repeats test functions alone and stops at other items",
    ),
    "forked": ("--forked", "an attempt that a process of its own makes leaves no record here"),
}


def refuse_neighbours(config: pytest.Config) -> None:
    """Raise for a plugin or an option of one that cannot be beside a gate run.

    Raises:
        pytest.UsageError: it names the plugin or option and what to do instead.
    """
    for dest, (typed, why) in _OPTIONS.items():
        if config.getoption(dest, None):
            raise pytest.UsageError(f"{typed} cannot be combined with --regcase: {why}. Leave it out.")
    if config.getoption("fail_on_flaky", False) and config.getoption("dist", "no") != "no":
        raise pytest.UsageError(
            "--fail-on-flaky cannot be combined with --regcase under pytest-xdist, where it does nothing. Leave it"
            " out: a check that failed once and then passed is red where the profile says so."
        )
    if not settings.confirms(config):  # then our items do not carry the mark
        return
    for plugin, names in _READ_THE_MARK.items():
        if any(config.pluginmanager.hasplugin(each) for each in names):
            raise pytest.UsageError(
                f"The plugin {plugin} cannot be beside --regcase: it reads the mark `flaky`, by which"
                f" pytest-rerunfailures repeats a failed check. Add -p no:{plugin} to this command."
            )
