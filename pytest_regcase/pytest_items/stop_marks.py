"""Files in the session's folder by which one worker tells the others that a case's live runs are stopped."""

from pathlib import Path

from pytest_regcase.records.attempt import AttemptKey


class StopMarks:
    """One empty file a recurrence, named by case and run number, so that no two processes write the same one."""

    def __init__(self, session_folder: Path) -> None:
        self._folder = session_folder / "stopped"

    def set(self, key: AttemptKey) -> None:
        """Stop the runs of this case that have a higher number."""
        folder = self._folder / key.case_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(key.run)).touch()

    def stops(self, key: AttemptKey) -> int | None:
        """Return the lowest run that stops this one; None when it is to be made.

        Runs with a lower number than the recurrence are still made, so that the decision, which reads runs in
        number order, does not depend on which worker was faster.
        """
        try:
            stopped_by = min((int(each.name) for each in (self._folder / key.case_id).iterdir()), default=None)
        except FileNotFoundError:
            return None
        return stopped_by if stopped_by is not None and stopped_by < key.run else None
