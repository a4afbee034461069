from inventory import cheapest, total

ITEMS = [(5, 2), (3, 10), (9, 1)]


def test_total():
    assert total(ITEMS) == 49


def test_cheapest():
    assert cheapest(ITEMS) == (3, 10)
