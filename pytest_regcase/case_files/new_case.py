"""Writes a case that was not there before: its folder, its files, its sealed case file. Never overwrites."""

import os
import secrets
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_regcase.case_files.loading import check_case
from pytest_regcase.case_files.places_on_disk import CASE_FILE, inside, replace_whole, writing
from pytest_regcase.case_files.rendering import table_of, toml_values
from pytest_regcase.case_files.seal import seal_text
from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.canonical import digest
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.toml_lines import parse_toml, shown

if TYPE_CHECKING:
    from tomlkit.items import Table

SCHEMA_REFERENCE = "../../regcase-case.schema.json"

_HEAD = "A regression case. What was observed is sealed; what is assumed, expected and next stands below it."
_COMMENTS = {
    ("title",): "says what, never why",
    ("agent",): "a name in [tool.regcase.agents]",
    ("observation",): "sealed: never edited, only amended",
    ("observation", "cause_status"): "shown for the reader; computed from [[evidence]]",
    ("observation", "failing_step"): "the step whose reply failed or never came",
    ("observation", "termination"): "why it stopped",
    ("observation", "by_person"): "not in the log: a person's word",
    ("observation", "labels"): "the harness's own labels: clues, not causes",
    ("observation", "recorded"): "files beside the case, after redaction",
    ("observation", "kept"): "looks like a secret; a person said that it stays",
    ("observation", "redactions"): "how many of each kind were removed; never the value",
    ("observation", "conditions"): "as recorded",
    ("baseline",): "how often it failed before any fix",
    ("occurrences",): "further trials of the same failure signature; none of them is evidence of a cause",
    ("replies",): "the supplier's answers before the fault",
    ("symptom_match",): "labels a failed live attempt as recurred; never makes one clean",
    ("hypotheses",): "guesses, each with simulations that test the recovery under it",
    ("expected_recovery",): "the same whatever the cause",
    ("expected_recovery", "when"): "a hypothesis class may tighten, never loosen",
}


def write_new_case(
    folder: Path,
    case: RegressionCase,
    files: Mapping[str, bytes],
    *,
    executable: Collection[str] = (),
) -> list[Path]:
    """Write `case` and `files` (names relative to it) to a new `folder`; return the paths, the case file first.

    The digests of files below ``recorded/`` go into the observation, except those that a person may replace (the
    work tree, a script, replies after a fault). The observation is sealed. Everything is written to a folder
    beside it, read back and checked, and only then renamed. `executable` names files to mark so.

    Raises:
        UsageRefused: the folder exists already, or the case lacks what a file needs (id, title, handover).
        FileError: the case, or one of the files, holds something that is not allowed.
        WriteError: the file system refuses; nothing of the case stays.
    """
    with writing(folder):
        taken = folder.exists() or folder.is_symlink()
    if taken:
        raise UsageRefused(
            f"Couldn't write the case {shown(folder)}: it exists already, and a case is never overwritten.\n"
            "Choose another id, or remove the folder."
        )
    absent = [name for name in ("id", "title", "handover") if getattr(case, name) is None]
    if absent:
        raise UsageRefused(f"Couldn't write the case {shown(folder)}: it has no {' and no '.join(absent)}.")
    text = seal_text(new_case_text(with_digests(case, files)))
    content = text.encode()
    toml = parse_toml(folder / CASE_FILE, content)
    draft = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.tmp"
    try:
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            draft.mkdir()
            for name, each in files.items():
                _write(draft, name, each, executable=name in executable)
            replace_whole(draft / CASE_FILE, content)
            check_case(toml, draft)
            # POSIX renames a folder onto an empty one, and onto no other: whoever was faster keeps theirs.
            draft.rename(folder)
    except FileError as error:
        # The draft is gone by the time that someone reads this.
        where = [each.replace(shown(draft), shown(folder)) for each in error.problems]
        raise type(error)(where) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [folder / CASE_FILE, *(folder / name for name in files)]


def with_digests(case: RegressionCase, files: Mapping[str, bytes]) -> RegressionCase:
    """Return `case` with the digests of its recorded files in the observation.

    Raises:
        UsageRefused: the case states another digest for one of them.
    """
    recorded = dict(case.observation.recorded)
    for name, content in files.items():
        if name.startswith("recorded/") and not _may_be_replaced(case, name):
            found = digest(content)
            if recorded.setdefault(name, found) != found:
                raise UsageRefused(
                    f"Couldn't write {name}: the case states the digest {recorded[name]}, not {found}."
                )
    observation = case.observation.model_copy(update={"recorded": recorded})
    return case.model_copy(update={"observation": observation})


def new_case_text(case: RegressionCase, *, schema_reference: str = SCHEMA_REFERENCE) -> str:
    """Return the text of a new case file, with comments that help its reader and without a seal."""
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.comment(_HEAD))
    values = toml_values(case, exclude=frozenset({"seal", "occurrences"}))
    if case.occurrences:
        values["occurrences"] = [toml_values(each) for each in case.occurrences]
    values["expected_recovery"] = toml_values(case.expected_recovery)
    if not case.expected_recovery.when:
        # Left out, it would mean the default, which is not empty.
        values["expected_recovery"]["when"] = {}
    if case.expected_recovery.other_failures == "stop":
        values["expected_recovery"].pop("other_failures")
    for key, value in values.items():
        if isinstance(value, dict):
            document.add(key, _commented((key,), value))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            many = tomlkit.aot()
            for number, each in enumerate(value):
                many.append(_commented((key,), each, first=number == 0))
            document.add(key, many)
        else:
            item = tomlkit.item(value)
            if key == "unresolved_questions":
                item = tomlkit.array()
                item.extend(value)
                item.multiline(True)
            elif (key,) in _COMMENTS:
                item.comment(_COMMENTS[key,])
            document.add(key, item)
    # tomlkit would put "# " before the line that editors look for.
    return f"#:schema {schema_reference}\n" + tomlkit.dumps(document)


def _commented(key: tuple[str, ...], values: Mapping[str, Any], *, first: bool = True) -> "Table":
    table = table_of({})
    for name, value in values.items():
        inner = (*key, name)
        if isinstance(value, dict):
            table.add(name, _commented(inner, value))
            continue
        table.add(name, value)
        if inner in _COMMENTS:
            table[name].comment(_COMMENTS[inner])
    if first and key in _COMMENTS:
        table.comment(_COMMENTS[key])
    return table


def _may_be_replaced(case: RegressionCase, name: str) -> bool:
    replies, task = case.replies, case.task
    if replies is not None and name in (replies.file, replies.after_fault):
        return True
    return task is not None and task.work_tree is not None and name.startswith(task.work_tree.rstrip("/") + "/")


def _write(folder: Path, name: str, content: bytes, *, executable: bool) -> None:
    try:
        path = inside(folder, name)
    except ValueError as error:
        raise FileError([f'the file name "{name}" {error}']) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)
    if executable:
        os.chmod(path, path.stat().st_mode | 0o111)
