"""Which wire a request belongs to. Pure; standard library only, since the supplier's child process imports it."""

from collections.abc import Sequence
from functools import lru_cache

from pytest_regcase.supplier.protocol import HttpRequest, Wire


def wire_of(wires: Sequence[Wire], request: HttpRequest) -> Wire | None:
    """Return the one wire that serves the request's path; None when none does.

    Where several do (two APIs list their models at ``/v1/models``), the headers that only one API's clients send
    decide, else the wire that asks for none.
    """
    return _chosen(_serving(tuple(wires), request.path), request)


def answering_wire(wires: Sequence[Wire], request: HttpRequest | None = None) -> Wire:
    """Return the wire in whose words a request is refused that no wire serves: told by its headers again.

    `request` is None for what was no HTTP at all.
    """
    request = request or HttpRequest("", "", "", (), b"")
    return wire_of(wires, request) or _chosen(wires, request) or wires[0]


def _chosen(wires: Sequence[Wire], request: HttpRequest) -> Wire | None:
    if len(wires) == 1:
        return wires[0]
    marked = [each for each in wires if any(request.header(name) is not None for name in each.marked_by)]
    plain = [each for each in wires if not each.marked_by]
    return next(iter(marked or plain or wires), None)


@lru_cache(maxsize=64)
def _serving(wires: tuple[Wire, ...], path: str) -> tuple[Wire, ...]:
    return tuple(each for each in wires if _has_path(each, path))


def _has_path(wire: Wire, path: str) -> bool:
    return any(
        path.startswith(each[:-1]) and "/" not in path[len(each) - 1 :] if each.endswith("/*") else path == each
        for each in wire.paths
    )
