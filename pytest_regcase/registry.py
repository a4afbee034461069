"""The door for extensions: importers, faults, wires and reporters, found by entry point.

Ours come in by the same door as a third party's. Nothing is imported before it is asked for.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from pytest_regcase.errors import ExtensionError, UnknownName, did_you_mean

Group = Literal["importers", "faults", "wires", "reporters"]


@cache
def names(group: Group) -> Mapping[str, EntryPoint]:
    """Return the entry points of `group` by name, sorted.

    Raises:
        ExtensionError: one name has two owners; both are shown.
    """
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=f"pytest_regcase.{group}"), key=lambda each: (each.name, each.value)):
        other = found.get(point.name)
        if other is not None and other.value != point.value:
            raise ExtensionError(
                f"Couldn't register the {group[:-1]} {point.name!r}: it has two owners,"
                f" {_owner(other)} and {_owner(point)}.\nUninstall one of them.",
                slug="duplicate-extension",
            )
        found[point.name] = point
    return found


def load(group: Group, name: str) -> Any:
    """Return the extension object: the class that the entry point names, not yet called.

    Raises:
        UnknownName: nobody has registered that name; the known ones are listed.
        ExtensionError: it is registered, but its module cannot be imported.
    """
    known = names(group)
    if name not in known:
        raise UnknownName(
            f"Couldn't find the {group[:-1]} {name!r}: nothing installed provides it.\n"
            f"{did_you_mean(name, known)}Known: {', '.join(known) or 'none'}."
        )
    try:
        return known[name].load()
    except (ImportError, AttributeError) as error:
        raise ExtensionError(
            f"Couldn't load the {group[:-1]} {name!r} of {_owner(known[name])}: {error}.\n"
            "It is registered, but broken; reinstall or uninstall its package."
        ) from error


def _owner(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else "an unnamed package"
    return f"{point.value} ({package})"
