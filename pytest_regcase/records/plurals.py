"""A number with its noun, as a sentence needs it. Pure; knows no record."""


def how_many(number: int, one: str, many: str | None = None) -> str:
    """Return ``1 trial`` or ``2 trials``; give `many` where it is more than `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
