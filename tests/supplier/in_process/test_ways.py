from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.wire import Delivery, NotApplicable
from pytest_regcase.supplier.in_process.ways import NOT_GIVEN, Means, Way, way_of

NOBODY_KNOWS = 'nothing says how it looks to a caller; name an exception in errors, as "meteor_strike"'


def simulation(kind: str, **settings: Any) -> Simulation:
    fault = {"kind": kind, "settings": settings}
    return Simulation.model_validate({"id": "x-v1", "hypothesis": "hidden", "title": "t", "fault": fault})


def test_a_kind_of_a_third_party_needs_its_own_exception() -> None:
    means = Means({"hidden": OSError}, 1.0, "")
    assert way_of(simulation("meteor_strike"), means, streaming=False) == NotApplicable(reason=NOBODY_KNOWS)
    named = Means({"meteor_strike": OSError}, 1.0, "")
    assert way_of(simulation("meteor_strike"), named, streaming=True) == Way(error=OSError)


@pytest.mark.parametrize("kind", registry.names("faults"))
def test_every_kind_of_ours_is_known(kind: str) -> None:
    way = way_of(simulation(kind), Means({}, None, NOT_GIVEN), streaming=True)
    assert isinstance(way, Way) or not way.reason.startswith("nothing says")


@pytest.mark.parametrize(
    ("way", "delivery"),
    [
        (Way(error=OSError), Delivery(answer="none", then="closed")),
        (Way(error=OSError, wait_seconds=1), Delivery(answer="none", then="held")),
        (Way(error=OSError, begins=True), Delivery(answer="partial", then="closed", body="some")),
        (Way(error=OSError, begins=True, wait_seconds=1), Delivery(answer="partial", then="held", body="some")),
        (Way(then="end"), Delivery(answer="complete", then="answered")),
        (Way(then="end", begins=True), Delivery(answer="complete", then="answered", body="some")),
        (Way(then="empty"), Delivery(answer="complete", then="answered")),
        (
            Way(then="answer", wait_seconds=2, late_seconds=2),
            Delivery(answer="complete", then="answered", not_before_seconds=2),
        ),
    ],
)
def test_what_the_log_must_show(way: Way, delivery: Delivery) -> None:
    assert way.delivery == delivery


def test_a_filter_that_blocks_the_answer_leaves_nothing() -> None:
    means = Means({"hidden": OSError}, None, "")
    assert way_of(simulation("content_filtered", blocks="answer"), means, streaming=False) == Way(then="empty")
    assert way_of(simulation("content_filtered"), means, streaming=False) == Way(error=OSError)


def test_an_exception_is_a_class_an_instance_or_made() -> None:
    instance = ValueError("made before")
    assert isinstance(Way(error=ValueError).exception(), ValueError)
    assert Way(error=instance).exception() is instance
    assert str(Way(error=lambda: ValueError("made now")).exception()) == "made now"
