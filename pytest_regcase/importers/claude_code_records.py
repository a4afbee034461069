"""The records of a Claude Code session: which of them are the conversation, in the order of its tree.

Knows the links between records (`uuid`, `parentUuid`, `logicalParentUuid`, `message.id`, `tool_use_id`); knows
nothing of what is said in them. Must import no importer.
Field names after the public samples and agent-schemas' JSON Schemas for 2.0.76 to 2.1.144: nobody specifies them.

What surprises: it is a tree, not a list: a person who goes back leaves a branch behind; one reply is split over
several records, and its tool results hang below each of them; what is a sub-agent's stands in the same file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pytest_regcase.importers.reading import filled, mapping, sequence

SPOKEN: Final = frozenset({"user", "assistant", "system"})
_DROPPED: Final = frozenset({"toolUseResult", "cwd", "gitBranch", "slug"})
"""Not kept in memory: the tool's result stands in the message too, the others are personal."""


@dataclass(frozen=True)
class SessionRecord:
    """One record of the file."""

    number: int
    """Its line."""
    body: Mapping[str, Any]

    @property
    def kind(self) -> str | None:
        """Return its type, such as ``user``."""
        return filled(self.body.get("type"))

    @property
    def uuid(self) -> str | None:
        """Return its own id."""
        return filled(self.body.get("uuid"))

    @property
    def parent(self) -> str | None:
        """Return the id of the record that it follows; behind a compaction that is the logical parent."""
        return filled(self.body.get("parentUuid")) or filled(self.body.get("logicalParentUuid"))

    @property
    def message(self) -> Mapping[str, Any]:
        """Return its message; empty where it has none."""
        return mapping(self.body.get("message"))

    @property
    def blocks(self) -> Sequence[Mapping[str, Any]]:
        """Return the content blocks of its message."""
        return [mapping(each) for each in sequence(self.message.get("content"))]

    @property
    def message_id(self) -> str | None:
        """Return the id of the reply that it is a part of."""
        return filled(self.message.get("id")) if self.kind == "assistant" else None

    @property
    def is_side(self) -> bool:
        """Say whether it belongs to a sub-agent."""
        return self.body.get("isSidechain") is True

    @property
    def begins_anew(self) -> bool:
        """Say whether the conversation was compacted right before it."""
        return self.body.get("subtype") == "compact_boundary" or self.body.get("isCompactSummary") is True


def record_of(number: int, body: Mapping[str, Any]) -> SessionRecord:
    """Return the record of a line; of what nobody said (progress, snapshots) only its place is kept."""
    if filled(body.get("type")) in SPOKEN:
        kept = {key: value for key, value in body.items() if key not in _DROPPED}
    else:
        kept = {
            key: body.get(key) for key in ("type", "uuid", "parentUuid", "sessionId", "version", "isSidechain")
        }
    return SessionRecord(number, kept)


class Conversation:
    """The main conversation of a file: its records, and how many were left out."""

    def __init__(self, records: Sequence[SessionRecord]) -> None:
        self._all = records
        said = [each for each in records if each.kind in SPOKEN]
        self.is_side = bool(said) and all(each.is_side for each in said)
        """The whole file is a sub-agent's."""
        self._said = said if self.is_side else [each for each in said if not each.is_side]
        self.side_calls = len({each.message_id or each.number for each in said if each.kind == "assistant"}) - len(
            {each.message_id or each.number for each in self._said if each.kind == "assistant"}
        )
        self.cut_at_the_start = False
        """It goes on from a record that is not in the file."""
        self.records = list(self._chosen())
        self.left_out = len(self._said) - len(self.records)

    @cached_property
    def _by_uuid(self) -> Mapping[str, SessionRecord]:
        return {each.uuid: each for each in self._all if each.uuid is not None}

    @cached_property
    def session(self) -> str | None:
        """Return the id of the session that the last spoken record belongs to."""
        last = self._leaf
        return filled(last.body.get("sessionId")) if last is not None else None

    @cached_property
    def _leaf(self) -> SessionRecord | None:
        spoken = [each for each in self._said if each.kind in ("user", "assistant")]
        return spoken[-1] if spoken else None

    def _chosen(self) -> Iterator[SessionRecord]:
        linked = [each for each in self._said if each.parent in self._by_uuid]
        if not linked:  # nothing is linked: the order of the file is all there is
            yield from (each for each in self._said if filled(each.body.get("sessionId")) in (None, self.session))
            return
        path = self._path()
        replies = {each.message_id for each in self._said if each.uuid in path and each.message_id is not None}
        calls: set[str] = set()
        for each in self._said:
            on_path = each.uuid is not None and each.uuid in path
            if each.message_id in replies:
                on_path = True
                calls.update(filter(None, (filled(block.get("id")) for block in each.blocks)))
            elif each.kind == "user":
                on_path |= any(filled(block.get("tool_use_id")) in calls for block in each.blocks)
            elif each.kind == "system":
                on_path |= each.parent in path
            if on_path:
                yield each

    def _path(self) -> set[str | None]:
        """Return the ids from the last record up to the first, across compactions."""
        path: set[str | None] = set()
        current = self._leaf
        while current is not None and current.uuid not in path:
            path.add(current.uuid)
            if current.parent is not None:
                above = self._by_uuid.get(current.parent)
                self.cut_at_the_start |= above is None
            elif current.begins_anew:
                before = [each for each in self._said if each.number < current.number]
                above = before[-1] if before else None
            else:
                above = None
            current = above
        return path
