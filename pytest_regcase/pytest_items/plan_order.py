"""Puts items back in the order of their plan after a plugin has shuffled them. Knows no kind of item."""

from collections.abc import Callable, Hashable

import pytest

PlaceInPlan = Callable[[pytest.Item], tuple[Hashable, int] | None]
"""Whose plan an item is part of, and where in it; None for an item of no plan."""


def put_in_plan_order(items: list[pytest.Item], place_in_plan: PlaceInPlan) -> None:
    """Sort the items of each plan as planned; which places in the run belong to which plan stays."""
    plans: dict[Hashable, list[tuple[int, int]]] = {}
    for place, item in enumerate(items):
        found = place_in_plan(item)
        if found is not None:
            owner, planned = found
            plans.setdefault(owner, []).append((planned, place))
    for own in plans.values():
        in_order = [items[place] for _, place in sorted(own)]
        for place, item in zip([place for _, place in own], in_order, strict=True):
            items[place] = item
