"""The supplier of an attempt whose agent is a function of this process, and the thread that stays with it.

The function itself cannot be ended: at its budgets the supplier is taken away from it. Never prints.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable

from pytest_regcase.records.words import EndedBy
from pytest_regcase.session.attempts.staging import Stage
from pytest_regcase.session.attempts.watch import Budgets, Watched, watch
from pytest_regcase.supplier.process import SupplierProcess
from pytest_regcase.supplier.spec import SupplierSpec


class RunningSupplier:
    """The supplier of an attempt, and the thread that stays with it while the function runs."""

    def __init__(self, stage: Stage, budgets: Budgets) -> None:
        self.spec: SupplierSpec = stage.spec()
        through = self.spec.pass_through
        self.supplier = SupplierProcess.start(self.spec, env_key=None if through is None else through.api_key_env)
        self.ended_at = 0.0
        self._t0 = stage.begun.t0
        self._here = _Here(self.supplier.stop)
        self._seen = Watched()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(
            target=self._watch, args=(stage, budgets), name="regcase-supplier", daemon=True
        )
        self._thread.start()

    @property
    def ended_by(self) -> EndedBy | None:
        """Which of our budgets took the supplier away; None: the function came to its end before."""
        return self._here.ended_by

    def settle(self) -> Watched:
        """Note that the function has ended, stop the supplier, and return what was seen."""
        self.ended_at = time.monotonic() - self._t0
        self.close()
        if self._failed is not None:
            raise self._failed
        return self._seen

    def close(self) -> None:
        """Stop the thread and the supplier. May be called again."""
        self._here.over()
        self._thread.join()
        self.supplier.stop()
        self._here.close()

    def _watch(self, stage: Stage, budgets: Budgets) -> None:
        try:
            self._seen = watch(self.supplier, self._here, budgets, stage.take_notes, t0=self._t0)
        except Exception as error:  # raised again by `settle`, in the function's thread
            self._failed = error
            self.supplier.stop()


class _Here:
    """The running function, as `watch` sees an agent."""

    def __init__(self, take_away: Callable[[], None]) -> None:
        self.done = False
        self.ended_by: EndedBy | None = None
        self._take_away = take_away
        self._read, self._write = os.pipe()
        self._is_over = False
        self._closed = False

    @property
    def has_exited(self) -> bool:
        return self.done

    def fileno(self) -> int:
        return self._read

    def read_messages(self) -> object:
        os.read(self._read, 1)
        self.done = True
        return None

    def end(self, _grace_seconds: float, *, ended_by: EndedBy) -> object:
        """Take the supplier away: the function itself cannot be ended."""
        self.ended_by = ended_by
        self._take_away()
        return None

    def over(self) -> None:
        """Tell `watch` that the function has ended."""
        if not self._is_over:
            self._is_over = True
            os.write(self._write, b".")

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            for each in (self._read, self._write):
                with contextlib.suppress(OSError):
                    os.close(each)
