"""How a lower-level log that was read is told: what it is, and how much of it counts. Knows text alone."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.evidence.compare import LogRead


def log_document(read: "LogRead") -> dict[str, Any]:
    """Return the log as it stands in a JSON document."""
    from pytest_regcase.evidence.window import shown_time
    from pytest_regcase.toml_lines import shown

    document: dict[str, Any] = {
        "file": _printable(shown(read.log.path)),
        "form": read.log.form.form,
        "says": read.log.form.says,
        "lines": read.lines,
        "in_window": read.in_window,
        "outside": read.outside,
        "unplaced": read.unplaced,
        "kinds": dict(sorted(read.kinds.items())),
        "left_out": read.left_out,
    }
    if read.first is not None and read.last is not None:
        document |= {"first": shown_time(read.first), "last": shown_time(read.last)}
    return document


def log_lines(read: "LogRead", *, window: bool = True) -> Iterator[str]:
    """Yield lines that tell what the log is, and, with `window`, how much of it is of the observation's time."""
    from pytest_regcase.evidence.window import shown_time
    from pytest_regcase.toml_lines import shown

    counted = f"{read.lines:,} line{'' if read.lines == 1 else 's'}"
    counts = read.log.form.form != "nothing"
    if window and counts:
        counted += f", {read.in_window:,} counted, {read.outside:,} of another time"
    if read.unplaced and counts:
        counted += f", {read.unplaced:,} that cannot be placed in time"
    yield wrapped(_printable(f"{shown(read.log.path)}: {read.log.form.says} ({counted})"))
    if not counts:
        return
    if read.first is not None and read.last is not None:
        if window and not read.in_window:
            yield wrapped(f"it goes from {shown_time(read.first)} to {shown_time(read.last)}", first="    ")
    else:
        yield wrapped(
            "its lines tell no point in time: a kernel's seconds since boot need the line that sets the clock,"
            " or `dmesg -T`, or `journalctl -k`"
            if "kernel" in read.kinds
            else "its lines begin with no time that we can read",
            first="    ",
        )
    if read.left_out:
        yield wrapped(f"{read.left_out:,} more lines bear on something and are not listed", first="    ")


def _printable(text: str) -> str:
    from pytest_regcase.importers.reading import printable

    return printable(text)
