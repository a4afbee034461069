from pytest_regcase.demo.behaviours import BEHAVIOURS
from pytest_regcase.records.words import EXPECTATIONS, OPTIONAL_EXPECTATIONS
from tests.demo.expected_findings import EXPECTED, FEW, SIMULATIONS


def test_the_table_covers_every_behaviour_and_simulation_with_a_reason() -> None:
    assert set(EXPECTED) == {"good", *BEHAVIOURS}
    for row in EXPECTED.values():
        assert set(row) in (set(SIMULATIONS), set(FEW))
        assert all(each.why and each.broken <= {*EXPECTATIONS, *OPTIONAL_EXPECTATIONS} for each in row.values())


def test_every_behaviour_is_told_from_the_good_agent() -> None:
    good = [each.broken for each in EXPECTED["good"].values()]
    assert good == [frozenset()] * len(SIMULATIONS)
    assert len(BEHAVIOURS) == 12
    for name in BEHAVIOURS:
        assert any(each.broken for each in EXPECTED[name].values()), name
