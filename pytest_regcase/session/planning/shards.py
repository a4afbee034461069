"""Parts of a run: ``i/n`` is the i-th of n, and every case is in exactly one. Pure.

The split depends on the order and the number of the cases alone, never on a ledger: shards with different ledgers
would else leave a case out.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

_Item = TypeVar("_Item")


class Shard(NamedTuple):
    """The part `number` (from 1) of `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def read_shard(text: str) -> Shard:
    """Return the shard that ``i/n`` means.

    Raises:
        ValueError: it is none; allowed is 1 <= i <= n.
    """
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    shard = Shard(int(found[1]), int(found[2])) if found else Shard(0, 0)
    if not 1 <= shard.number <= shard.of:
        raise ValueError(f"{text!r} is no i/n with 1 <= i <= n")
    return shard


def part(items: Sequence[_Item], shard: Shard | None) -> tuple[_Item, ...]:
    """Return the shard's items in their order; all without one. Neighbours go to different shards."""
    return tuple(items) if shard is None else tuple(items[shard.number - 1 :: shard.of])


def missing(seen: Iterable[Shard]) -> tuple[Shard, ...]:
    """Return the shards that are not there beside those seen, all of one `of`."""
    found = set(seen)
    of = {each.of for each in found}
    return tuple(Shard(number, n) for n in sorted(of) for number in range(1, n + 1) if (number, n) not in found)
