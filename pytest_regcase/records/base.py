"""The base of every record: frozen, strict, no unknown keys."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Many = Annotated[tuple[T, ...], Field(strict=False)]
"""A frozen sequence that also takes a list (TOML and JSON have no tuples); its items stay strict."""


class Record(BaseModel):
    """A frozen value passed between stages: no behaviour beyond validation and derived properties."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", populate_by_name=True)

    def to_plain(self) -> dict[str, Any]:
        """Return plain JSON types only (what may stand on a pytest report or in the ledger)."""
        return self.model_dump(mode="json", by_alias=True)

    def to_sparse(self) -> dict[str, Any]:
        """Return plain JSON types with every absent value (None, empty sequence or mapping) left out."""
        return _without_absent(self.model_dump(mode="json", by_alias=True))


def _without_absent(value: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            item = _without_absent(item)
        elif isinstance(item, list):
            item = [_without_absent(each) if isinstance(each, dict) else each for each in item]
        if item is not None and item != [] and item != {}:
            kept[key] = item
    return kept
