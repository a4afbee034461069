"""Whether a trial of a sweep ran before the last claimed fix, by what ran and by when.

Knows fixes and digests; reads no log.
"""

from datetime import datetime

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.rules.lifecycle import in_utc, last_fix
from pytest_regcase.session.revisions.log_revision import LogRevisions, Ran


class BeforeFix:
    """Tells it for the trials of one case. Without a claimed fix nothing ran before one."""

    def __init__(self, loaded: LoadedCase, revisions: LogRevisions) -> None:
        self._fix = last_fix(loaded.case)
        self._failed_at, _ = revisions.of_revision(loaded.case.observation.source_revision)
        """The agent digest that the case's own trial ran with; None where that is not known."""

    def why(self, ran: Ran, at: datetime) -> str | None:
        """Return why a trial that began at `at` does not count for the last fix; None where it may.

        The digest decides where it tells the two apart: the revision that the case failed at is not the fixed one,
        and the one that the fix was claimed at is, also for a sweep that ran before somebody wrote the claim down.
        Where it does not (the fix is of the server's configuration, or nobody knows what ran), the time does.
        """
        fix = self._fix
        if fix is None:
            return None
        agent = None if ran.unknown else ran.digests.agent
        fixed_elsewhere = self._failed_at is not None and self._failed_at != fix.revision
        if fixed_elsewhere and agent == self._failed_at:
            return f"it ran at the revision that the case failed at, before fix {fix.number}"
        if fixed_elsewhere and agent == fix.revision:
            return None
        if at < in_utc(fix.at):
            return f"it ran before fix {fix.number} was claimed"
        return None
