"""What a run tells GitHub Actions beside its log: annotations at case files, and the step's summary.

Knows the runner's environment variables and appends to its file; prints nothing. None of it changes a decision.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.reporters.github import CaseText, annotations
from pytest_regcase.reporters.markdown import MarkdownReporter

SUMMARY_LIMIT_BYTES = 1024 * 1024
"""GitHub drops the whole summary of a step that is larger."""


class GitHubActions:
    """The runner that this process runs on."""

    def __init__(self, workspace: Path, summary: Path | None) -> None:
        self._workspace = workspace
        self._summary = summary

    @classmethod
    def found_in(cls, environment: Mapping[str, str]) -> "GitHubActions | None":
        """Return the runner that `environment` describes; None where there is none."""
        if environment.get("GITHUB_ACTIONS") != "true":
            return None
        summary = environment.get("GITHUB_STEP_SUMMARY")
        workspace = environment.get("GITHUB_WORKSPACE") or os.curdir
        return cls(Path(workspace).resolve(), Path(summary) if summary else None)

    def annotations(
        self, decision: GateDecision | None, cases: Iterable[LoadedCase], troubles: Sequence[str] = ()
    ) -> list[str]:
        """Return the lines to print, each at the start of a line of stdout or stderr."""
        files: dict[str, CaseText] = {}
        for case in cases:
            try:
                files[case.id] = CaseText(str(case.path), case.path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                files[case.id] = CaseText(str(case.path), "")
        return annotations(decision, files, in_repository=self._in_repository, troubles=troubles)

    def add_summary(self, decision: GateDecision, attempts: Sequence[AttemptRecord]) -> str | None:
        """Append the Markdown report to the step's summary; return what is wrong where that cannot be done."""
        if self._summary is None:
            return None
        text = MarkdownReporter().write(decision, attempts)
        try:
            there = self._summary.stat().st_size if self._summary.exists() else 0
            if there + len(text.encode()) > SUMMARY_LIMIT_BYTES:
                return "Couldn't add to the step summary: it would pass 1 MiB, and GitHub would drop all of it."
            with self._summary.open("a", encoding="utf-8") as file:
                file.write(f"\n{text}" if there else text)
        except OSError as error:
            return f"Couldn't add to the step summary {self._summary}: {error.strerror or error}."
        return None

    def _in_repository(self, path: str) -> str | None:
        try:
            return Path(path).resolve().relative_to(self._workspace).as_posix()
        except ValueError:
            return None
