"""The library and how it is had: built once, or refused with what to do."""

import importlib.util
import sys
from pathlib import Path

import pytest

from pytest_regcase.agents import clock
from pytest_regcase.errors import MachineryError, UsageRefused


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")


def test_it_is_built_once(clock_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "COMPILERS", ())
    assert clock.library(clock_library.parent) == clock_library
    assert [each.name for each in clock_library.parent.iterdir()] == [clock_library.name]


def test_another_source_is_another_library(
    clock_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "clock.c"
    source.write_bytes(clock.SOURCE.read_bytes() + b"/* changed */\n")
    monkeypatch.setattr(clock, "SOURCE", source)
    assert clock.library(tmp_path / "other").name != clock_library.name


@pytest.mark.usefixtures("on_linux")
def test_without_a_compiler_it_says_what_brings_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "COMPILERS", ("no-such-compiler",))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageRefused) as caught:
        clock.library(tmp_path)
    assert caught.value.text == (
        "Couldn't give the agent a clock of its own: no C compiler (no-such-compiler) builds it here.\n"
        "Install one, or run `pip install 'pytest-regcase[clock]'`, which brings one; or set time_scale = 1."
    )


def test_the_extra_brings_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "COMPILERS", ())
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "ziglang")
    assert clock.compiler() == (sys.executable, "-m", "ziglang", "cc")


@pytest.mark.usefixtures("on_linux")
def test_what_the_compiler_says_is_handed_on_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = script(tmp_path / "cc", "echo no space left; exit 3")
    monkeypatch.setattr(clock, "COMPILERS", (compiler,))
    with pytest.raises(MachineryError) as caught:
        clock.library(tmp_path / "built")
    assert caught.value.text == (
        f"Couldn't build the agent's clock: {compiler} ended with 3.\nIt said: no space left"
    )
    assert list((tmp_path / "built").iterdir()) == []


@pytest.mark.usefixtures("on_linux")
@pytest.mark.parametrize("name", ["my project", "a:b", "$ORIGIN"])
def test_a_folder_that_the_loader_cannot_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageRefused) as caught:
        clock.library(tmp_path / name)
    first, last = caught.value.text.splitlines()
    assert first.startswith(
        f"Couldn't give the agent a clock of its own: LD_PRELOAD cannot name {tmp_path / name}/clock-"
    )
    assert last == (
        "Move the project to a folder without white space, colons and dollar signs, or set time_scale = 1."
    )


def test_elsewhere_than_on_linux_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UsageRefused) as caught:
        clock.library(tmp_path)
    assert caught.value.text == (
        "Couldn't give the agent a clock of its own: that works on Linux, and this is darwin.\n"
        "Set time_scale = 1, or run on Linux."
    )


def test_a_library_of_the_agents_own_stays_preloaded(tmp_path: Path) -> None:
    ours, state = tmp_path / "ours.so", tmp_path / "state"
    assert clock.variables(ours, state, {"LD_PRELOAD": "theirs.so", "HOME": "/x"}) == {
        "LD_PRELOAD": f"{ours}:theirs.so",
        "REGCASE_CLOCK": str(state),
    }
    assert clock.variables(ours, state, {}) == {"LD_PRELOAD": str(ours), "REGCASE_CLOCK": str(state)}
