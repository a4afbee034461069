"""The door for extensions: one owner a name, and two different words for absent and broken."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from pytest_regcase import registry
from pytest_regcase.errors import ExtensionError, UnknownName


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """Entry points of the group `faults`, instead of the installed ones."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: [each for each in found if each.group == group])
    registry.names.cache_clear()
    yield found
    registry.names.cache_clear()


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group="pytest_regcase.faults")


def test_ours_come_in_by_the_same_door() -> None:
    assert {"no_answer", "process_killed"} <= set(registry.names("faults"))
    assert {"mini-swe-agent", "inspect", "trial-jsonl"} <= set(registry.names("importers"))
    for group in ("importers", "faults", "wires", "reporters"):
        for name in registry.names(group):
            assert registry.load(group, name) is not None


def test_a_name_with_two_owners_shows_both(entries: list[EntryPoint]) -> None:
    entries += [point("slow", "theirs:Slow"), point("slow", "ours:Slow")]
    with pytest.raises(ExtensionError, match=r"ours:Slow .* and theirs:Slow"):
        registry.names("faults")


def test_the_same_entry_seen_twice_is_one(entries: list[EntryPoint]) -> None:
    entries += [point("slow", "json:dumps"), point("slow", "json:dumps")]
    assert list(registry.names("faults")) == ["slow"]


def test_absent_and_broken_are_told_apart(entries: list[EntryPoint]) -> None:
    entries += [point("gone", "no_such_module_at_all:X"), point("half", "json:no_such_name")]
    with pytest.raises(UnknownName, match="Known: gone, half"):
        registry.load("faults", "other")
    for name in ("gone", "half"):
        with pytest.raises(ExtensionError, match="registered, but broken"):
            registry.load("faults", name)
