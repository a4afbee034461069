"""Writes the decision to a file that somebody named, in the format of its suffix."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from pytest_regcase import registry
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.reporters.protocol import Reporter


class ReportFile:
    """A file that the decision will be written to."""

    def __init__(self, path: Path, option: str = "--regcase-report") -> None:
        """Find the reporter now: after the run would be too late to say that there is none.

        `option` is where the path was given, for messages.

        Raises:
            UsageRefused: no reporter has that suffix, or the path is a folder.
        """
        known = {each.suffix: each for each in map(_reporter, registry.names("reporters"))}
        if path.suffix not in known:
            raise UsageRefused(
                f"Couldn't choose a format for {option}={path.name}: no reporter has the suffix"
                f" {path.suffix!r}.\nKnown: {', '.join(sorted(known)) or 'none'}."
            )
        if os.path.isdir(path):
            raise UsageRefused(f"Couldn't use {option}={path}: it is a folder.\nName a file.")
        self.path = path
        self._reporter = known[path.suffix]

    def write(self, decision: GateDecision, attempts: Sequence[AttemptRecord]) -> None:
        """Write the whole file or nothing.

        Raises:
            OSError: the file system refuses.
        """
        text = self._reporter.write(decision, attempts)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, self.path)


def _reporter(name: str) -> Reporter:
    return cast("Reporter", registry.load("reporters", name)())
