"""Reads a case file and what lies beside it, and checks everything that the file alone can show to be wrong.

Executes nothing, writes nothing. Whether the agent and the simulations that a case names exist is not known here.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_regcase.case_files.places_on_disk import CASE_FILE, inside, pending_folder
from pytest_regcase.case_files.recorded import digest_of_recorded, read_text, read_transcript, tree_digest
from pytest_regcase.case_files.seal import broken_seal, observation_digest
from pytest_regcase.errors import FileError, SealError, UsageRefused
from pytest_regcase.records.canonical import digest, digest_of
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.records.trial import TranscriptLine
from pytest_regcase.records.words import HypothesisClass, ScenarioKind
from pytest_regcase.rules.exact import proportion
from pytest_regcase.toml_lines import Key, TomlFile, at_line, read_toml, shown, validate

TRANSCRIPT = "recorded/transcript.jsonl"
SCHEMA_VERSION = 1
REQUIRED: tuple[Key, ...] = (("schema",), ("id",), ("title",), ("handover",), ("observation", "cause_status"))
"""What a file must hold beyond what a `RegressionCase` built in Python needs."""


@dataclass(frozen=True)
class LoadedCase:
    """A case and the files beside it. The methods read those files once, when first asked."""

    path: Path
    folder: Path
    case: RegressionCase

    @property
    def id(self) -> str:
        """The case's id."""
        return self.case.id or self.folder.name

    def transcript(self) -> tuple[TranscriptLine, ...] | None:
        """Return the recorded transcript; None where the case has none."""
        return self._transcript

    def reply_lines(self) -> tuple[TranscriptLine, ...]:
        """Return the lines that the supplier answers from before the fault: the transcript, or a person's script.

        Empty where there is neither, and where the replies are passed through.
        """
        replies = self.case.replies
        if replies is None or replies.source == "transcript":
            return self._transcript or ()
        return self._script if replies.source == "script" else ()

    def after_fault_lines(self) -> tuple[TranscriptLine, ...]:
        """Return the lines that answer once a fault has healed; empty where the case has none."""
        return self._after_fault

    def task_text(self) -> str | None:
        """Return what the agent is asked to do; None without a ``[task]``."""
        task = self.case.task
        return None if task is None or task.text_file is None else read_text(self.folder / task.text_file)

    def work_tree(self) -> Path | None:
        """Return the folder of plain files that the agent starts from; None where the case has none."""
        task = self.case.task
        return None if task is None or task.work_tree is None else self.folder / task.work_tree

    def digest_for(self, hypothesis: HypothesisClass | None, kind: ScenarioKind) -> str:
        """Return the case digest of one scenario: what a count of its attempts belongs to.

        It covers the id, the task and the replies by content, the symptom match, the failing step and what is
        expected in that scenario. A further hypothesis, the handover, evidence, fixes, amendments and quarantine
        change nothing; neither does the name of a file.
        """
        of = hypothesis if kind == "simulation" else None
        known = self._scenario_digests.get(of)
        if known is None:
            known = self._scenario_digests[of] = self._scenario_digest(of)
        return known

    def file_digests(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the digests of the task and of the replies, by what their files hold."""
        return self._task_digests, self._reply_digests

    @cached_property
    def _scenario_digests(self) -> dict[HypothesisClass | None, str]:
        return {}

    def _scenario_digest(self, hypothesis: HypothesisClass | None) -> str:
        case = self.case
        expected = case.expected_recovery.under(hypothesis)
        return digest_of(
            {
                "id": self.id,
                "task": self._task_digests,
                "replies": self._reply_digests,
                "symptom_match": case.symptom_match.to_sparse() if case.symptom_match is not None else None,
                "failing_step": case.observation.failing_step,
                "expected_recovery": expected.to_sparse(),
            }
        )

    @cached_property
    def _transcript(self) -> tuple[TranscriptLine, ...] | None:
        path = self.folder / TRANSCRIPT
        return read_transcript(path) if path.is_file() else None

    @cached_property
    def _script(self) -> tuple[TranscriptLine, ...]:
        name = self.case.replies.file if self.case.replies is not None else None
        return read_transcript(self.folder / name) if name is not None else ()

    @cached_property
    def _after_fault(self) -> tuple[TranscriptLine, ...]:
        name = self.case.replies.after_fault if self.case.replies is not None else None
        return () if name is None else read_transcript(self.folder / name, first_step=self._step_after_fault)

    @property
    def _step_after_fault(self) -> int:
        replied = [line.step for line in self.reply_lines() if line.is_reply]
        return self.case.observation.failing_step or max(replied, default=0) + 1

    @cached_property
    def _task_digests(self) -> dict[str, str]:
        text, tree = self.task_text(), self.work_tree()
        found = {"text": digest(text.encode())} if text is not None else {}
        return found | ({"work_tree": tree_digest(tree)} if tree is not None else {})

    @cached_property
    def _reply_digests(self) -> dict[str, str]:
        replies = self.case.replies
        source = replies.source if replies is not None else "transcript"
        found: dict[str, str] = {"source": source}
        name = {"transcript": TRANSCRIPT, "script": replies.file if replies is not None else None}.get(source)
        if name is not None and (self.folder / name).is_file():
            found["lines"] = digest_of_recorded(self.folder / name)
        if replies is not None and replies.after_fault is not None:
            found["after_fault"] = digest_of_recorded(self.folder / replies.after_fault)
        return found


def load_case(path: Path) -> LoadedCase:
    """Read the case file `path` (or the one in the folder `path`) and check it and the files beside it.

    Raises:
        SealError: the observation or a recorded file is not what was sealed, or nothing is sealed.
        FileError: the file holds something that is not allowed; one line a problem, with file and line.
    """
    return check_case(read_toml(path / CASE_FILE if path.is_dir() else path))


def check_case(toml: TomlFile, folder: Path | None = None, *, seal: bool = True) -> LoadedCase:
    """Check a case file that is read already; raises as `load_case`.

    `folder` is where the files beside it lie, when not beside it yet. Without `seal` the seal is not looked at.
    """
    try:
        return _checked(toml, folder if folder is not None else toml.path.parent, seal=seal)
    except OSError as error:
        # A folder that may not be entered, a tree that changes meanwhile: one bad case, not the end of a session.
        name = shown(Path(error.filename)) if isinstance(error.filename, str) else "a file beside it"
        says = f"{name} cannot be read: {error.strerror or error}"
        raise FileError([at_line(toml.path, None, says)]) from error


def _checked(toml: TomlFile, folder: Path, *, seal: bool) -> LoadedCase:
    check_version(toml)
    data: Mapping[str, Any] = toml.data
    if not seal:
        # It is about to be written: what stands there may be a placeholder.
        data = {key: value for key, value in data.items() if key != "seal"}
    case = validate(RegressionCase, TomlFile(toml.path, dict(data), toml.text), required=REQUIRED)
    problems = [*_wrong_words(toml, case), *_wrong_names(toml, case, folder)]
    if problems:
        raise FileError(problems)
    loaded = LoadedCase(path=toml.path, folder=folder, case=case)
    unsealed = [*_wrong_digests(toml, case, folder), *(_broken_seal(toml, case) if seal else ())]
    if unsealed:
        if pending_folder(folder).is_dir():
            says = f"an edit of this case was cut short; `regcase redact {shown(toml.path)}` finishes it"
            unsealed.append(at_line(toml.path, None, says))
        raise SealError(unsealed)
    _read_all(loaded)
    return loaded


def check_version(toml: TomlFile) -> None:
    """Refuse a file of a format that is newer than we know, or that only looks like ours (``true``, ``1.0``).

    Raises:
        FileError: it is.
    """
    version = toml.data.get("schema")
    if isinstance(version, bool | float):  # equal to 1 in Python, and so to a model
        written = str(version).lower()
        raise FileError([toml.problem(("schema",), f"schema = {written}; allowed: {SCHEMA_VERSION}")])
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise FileError(
            [
                toml.problem(
                    ("schema",),
                    f"schema = {version} is newer than this pytest-regcase reads; allowed: {SCHEMA_VERSION}."
                    " Upgrade pytest-regcase",
                )
            ]
        )


def duplicate_ids(cases: list[LoadedCase]) -> list[FileError]:
    """Return one error for each id that several cases have, naming all their files: the ledger counts by id."""
    paths: dict[str, list[Path]] = {}
    for each in cases:
        paths.setdefault(each.id, []).append(each.path)
    return [
        FileError(
            [at_line(path, None, f'the id "{name}" is also that of {_others(path, group)}') for path in group]
        )
        for name, group in sorted(paths.items())
        if len(group) > 1
    ]


def _others(path: Path, group: list[Path]) -> str:
    return ", ".join(shown(each) for each in group if each != path)


def _wrong_words(toml: TomlFile, case: RegressionCase) -> Iterator[str]:
    """What a model of values cannot see: what one key says about another."""
    if isinstance(toml.data.get("expected_recovery"), str):
        yield toml.problem(
            ("expected_recovery",), 'expected_recovery is text; allowed: a table, with the text as its "summary"'
        )
    if case.cause_status != case.computed_cause_status:
        standing = sum(each.withdrawn is None for each in case.evidence)
        yield toml.problem(
            ("observation", "cause_status"),
            f'observation.cause_status = "{case.cause_status}"; allowed: "{case.computed_cause_status}", which is'
            f" what [[evidence]] computes to ({standing} standing). It is never edited by hand",
        )
    pattern = case.symptom_match.error_type if case.symptom_match is not None else None
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            yield toml.problem(
                ("symptom_match", "error_type"),
                f"symptom_match.error_type = {pattern!r} is no regular expression: {error}",
            )
    rule = case.handover.rerun_rule if case.handover is not None else None
    for name in ("max_failure_rate", "risk") if rule is not None else ():
        value = getattr(rule, name)
        try:
            proportion(value, name)
        except UsageRefused:
            yield toml.problem(
                ("handover", "rerun_rule", name),
                f'handover.rerun_rule.{name} = "{value}"; allowed: more than 0 and less than 1, with at most 100'
                " decimals",
            )
    replies = case.replies
    if replies is not None and replies.file is not None and replies.source != "script":
        yield toml.problem(
            ("replies", "file"), f'replies.file is read only with source = "script"; found "{replies.source}"'
        )


def _wrong_names(toml: TomlFile, case: RegressionCase, folder: Path) -> Iterator[str]:
    """File names that leave the folder, and files that are not there."""
    for key, name, wanted in _named(case):
        try:
            path = inside(folder, name)
        except ValueError as error:
            yield toml.problem(key, f'"{name}" {error}')
            continue
        if wanted == "folder" and not path.is_dir():
            yield toml.problem(key, f'"{name}" is no folder beside the case file')
        elif wanted != "folder" and not (path.is_file() or (wanted == "either" and path.is_dir())):
            yield toml.problem(key, f'"{name}" is not beside the case file')
    replies = case.replies
    says_so = replies is not None and replies.source == "transcript" and "source" in replies.model_fields_set
    if says_so and not (folder / TRANSCRIPT).is_file():
        yield toml.problem(("replies", "source"), f'source = "transcript" needs {TRANSCRIPT}, which is not there')
    try:
        inside(folder, TRANSCRIPT)
    except ValueError as error:
        yield at_line(folder / TRANSCRIPT, None, str(error))
    else:
        if os.path.lexists(folder / TRANSCRIPT) and not (folder / TRANSCRIPT).is_file():
            yield at_line(folder / TRANSCRIPT, None, "is there, but is no file")


def _named(case: RegressionCase) -> Iterator[tuple[Key, str, str]]:
    for name in case.observation.recorded:
        yield ("observation", "recorded", name), name, "either"
    if case.task is not None:
        if case.task.text_file is not None:
            yield ("task", "text_file"), case.task.text_file, "file"
        if case.task.work_tree is not None:
            yield ("task", "work_tree"), case.task.work_tree, "folder"
    if case.replies is not None:
        if case.replies.file is not None:
            yield ("replies", "file"), case.replies.file, "file"
        if case.replies.after_fault is not None:
            yield ("replies", "after_fault"), case.replies.after_fault, "file"


def _wrong_digests(toml: TomlFile, case: RegressionCase, folder: Path) -> Iterator[str]:
    for name, wanted in case.observation.recorded.items():
        found = digest_of_recorded(folder / name)
        if found != wanted:
            yield toml.problem(
                ("observation", "recorded", name),
                f'"{name}" is not what was recorded: its digest is {found}; allowed: {wanted}',
            )
    # What is replayed drives the agent's tools, so it never slips in beside a sealed observation.
    transcript = folder / TRANSCRIPT
    if transcript.is_file() and TRANSCRIPT not in case.observation.recorded:
        yield toml.problem(
            ("observation",),
            f"{TRANSCRIPT} is there, but [observation.recorded] does not hold its digest; allowed:"
            f' "{TRANSCRIPT}" = "{digest_of_recorded(transcript)}", or another file name with'
            ' [replies] source = "script"',
        )


def _broken_seal(toml: TomlFile, case: RegressionCase) -> list[str]:
    if case.seal is None:
        return [
            at_line(
                toml.path,
                None,
                "the observation is not sealed; when it says what was seen, run"
                f" `regcase seal {shown(toml.path)}`",
            )
        ]
    if observation_digest(toml.data["observation"]) != case.seal.observation:
        return broken_seal(toml, case.seal.observation)
    return []


def _read_all(loaded: LoadedCase) -> None:
    """Read every file that a run would read: a bad line is found now, not in the middle of an attempt."""
    loaded.transcript()
    loaded.reply_lines()
    loaded.after_fault_lines()
    loaded.file_digests()
