"""Files in the session's folder by which one worker tells the others that a case's live runs are stopped."""

import hashlib
from pathlib import Path

from pytest_regcase.records.attempt import AttemptKey


class StopMarks:
    """One empty file a recurrence, named by case and run number, so that no two processes write the same one."""

    def __init__(self, session_folder: Path) -> None:
        self._folder = session_folder / "stopped"

    def set(self, key: AttemptKey) -> None:
        """Stop the runs of this case that have a higher number."""
        folder = self._folder_of(key)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(key.run)).touch()

    def stops(self, key: AttemptKey, failures: int = 1) -> int | None:
        """Return the run that stops this one, as the last of so many failed ones; None when it is to be made.

        Runs with a lower number than that one are still made, so that the decision, which reads runs in number
        order, does not depend on which worker was faster.
        """
        below = [run for run in self.failed(key) if run < key.run]
        return below[failures - 1] if len(below) >= failures else None

    def failed(self, key: AttemptKey) -> list[int]:
        """Return the numbers of the live runs of this case and agent that failed so far, lowest first."""
        try:
            return sorted(int(each.name) for each in self._folder_of(key).iterdir())
        except FileNotFoundError:
            return []

    def _folder_of(self, key: AttemptKey) -> Path:
        # Two agents of one case do not stop each other; a digest, since a function's name holds slashes.
        return self._folder / key.case_id / hashlib.sha256(key.agent.encode()).hexdigest()[:16]
