"""The operating curve of a plan in a terminal: two small panels that need neither colour nor a wide window.

Knows points and plotext; plotext is imported when a plot is drawn, and knows its own sizes no better than we do.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_regcase.rules.operating import Operating

COLUMNS = 78
"""Two fewer than the narrowest terminal that we format for."""
_ROWS = 14
_ASCII = str.maketrans("┌┐└┘├┤┬┴┼─│•", "+++++++++-|*")


def curve_plot(points: "Sequence[Operating]", excluded: float) -> str:
    """Return the plot of `points`, in ascending rates: chance to be accepted, and runs until it is settled.

    A vertical line stands at `excluded`, the rate that the plan rules out.
    """
    import plotext

    plotext.terminal.limit(False, False)  # the size asked for, whatever terminal there is or is not
    figure = plotext.figure.clear()
    figure.plot_size(COLUMNS, _ROWS)
    figure.subplots(1, 2)
    most = max(each.expected_runs for each in points)
    rates = [each.rate for each in points]
    marks = [rate for rate in (0.0, excluded, 2 * excluded) if rate <= rates[-1]]
    panels = (
        ("chance to be accepted", [each.accept for each in points], 1.0),
        ("runs until it is settled", [each.expected_runs for each in points], most),
    )
    for column, (title, values, top) in enumerate(panels, 1):
        panel = figure.subplot(1, column)
        panel.draw(panel.signal(rates, values, marker="•").lines())
        panel.title(title)
        panel.label("true failure rate")
        panel.line(excluded, orientation="vertical")
        panel.ruler("x").lim(0, rates[-1]).ticks(marks, [f"{mark:g}" for mark in marks])
        panel.ruler("y").lim(0, top)
    lines = figure.build().string(colorless=True).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def as_ascii(plot: str) -> str:
    """Return the plot in characters that every terminal has."""
    return plot.translate(_ASCII)
