"""Stock of a small shop."""


def total(items):
    return sum(price for price, count in items)


def cheapest(items):
    return max(items, key=lambda item: item[0])
