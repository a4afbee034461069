"""Progress of long readings, on a terminal only: a pipe or a file gets nothing of it.

Knows the terminal; knows no stage.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

AFTER_SECONDS = 0.5
"""What takes less needs no progress, and no library that draws one."""
_SHOWN_NAME = 40

Tell = Callable[[int, int | None, str], None]


@contextmanager
def progress(doing: str = "reading") -> Iterator[Tell | None]:
    """Yield what is to be told of each thing that is read, or done; None where stderr is no terminal.

    The line is gone when the block ends, so that what is printed then stands alone.
    """
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    with ExitStack() as until_done:

        @cache
        def drawn() -> Tell:
            return _bar(until_done, doing)

        def tell(done: int, total: int | None, name: str) -> None:
            if time.monotonic() - began >= AFTER_SECONDS:
                drawn()(done, total, name)

        yield tell


def _bar(until_done: ExitStack, doing: str) -> Tell:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    shown = until_done.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    task = shown.add_task("", total=None)

    def tell(done: int, total: int | None, name: str) -> None:
        plain = "".join(each if each.isprintable() and each not in "[]" else "?" for each in name)
        shown.update(task, completed=done, total=total, description=plain[-_SHOWN_NAME:])

    return tell
