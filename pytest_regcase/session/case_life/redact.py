"""Removes a secret that was found after a case was written: from the case file and all files beside it, or none.

The order of the stages: read, remove, count, reseal, amend, check, replace. Never prints, and no message of its
own or of a stage holds the secret.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from pytest_regcase.case_files import (
    CASE_FILE,
    LoadedCase,
    finish_replacing,
    is_half_replaced,
    load_case,
    replace_files,
    tree_digest,
)
from pytest_regcase.case_files.guarded import REDACTED
from pytest_regcase.case_files.loading import TRANSCRIPT
from pytest_regcase.case_files.rendering import record_text
from pytest_regcase.case_files.rewriting import add_redactions, replace_digests, rewrite_strings
from pytest_regcase.case_files.seal import ended, newline_of, reseal_text
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError, RegcaseError, UsageRefused
from pytest_regcase.records.canonical import canonical_json, digest
from pytest_regcase.records.case import Amendment, RegressionCase
from pytest_regcase.redaction import Keep, Literal, Redactor, numbers_taken, redact_record
from pytest_regcase.session.project.who import who_acts
from pytest_regcase.toml_lines import Key, parse_toml, shown

BY_HAND: Final = "by_hand"
"""The kind of what a person named and no pattern tells."""
_FOUND_LATER: Final = "a secret was found after the case was written"
_FOUND_BY_PATTERNS: Final = "found by a later version's patterns"


@dataclass(frozen=True)
class RedactedCase:
    """What was removed, and from where; nothing, where `files` is empty."""

    path: Path
    case_id: str
    looked_at: tuple[str, ...]
    """Names relative to the case's folder, the case file first."""
    files: dict[str, int] = field(default_factory=dict)
    """How many were removed from each file."""
    redactions: dict[str, int] = field(default_factory=dict)
    amendment: Amendment | None = None
    digest: str | None = None
    """What the observation is sealed with now."""
    counts_anew: bool = False
    """What a count of attempts belongs to has changed, so live attempts are counted anew."""
    finished: tuple[str, ...] = ()
    """Files of an earlier redaction that had been cut short and is done now."""


class Remover(Protocol):
    """Takes secrets out of one file's text and counts them."""

    counts: Counter[str]

    def in_file(self, name: str, text: str) -> str:
        """Return the text of a recorded file without what is to go."""

    def in_value(self, key: Key, value: str) -> str:
        """Return a string of the case file without it."""

    def outside_values(self, text: str) -> str:
        """Return comments, keys and headers of the case file without it."""


def redact_case(
    project: Project,
    path: Path,
    secret: str | None = None,
    *,
    why: str | None = None,
    by: str | None = None,
    at: datetime | None = None,
) -> RedactedCase:
    """Remove `secret` from the case; without one, whatever today's patterns find in what was recorded.

    The observation is sealed anew and an amendment appended. A redaction of this case that was cut short is
    finished first.

    Raises:
        UsageRefused: the secret is too short or in none of the files, or stands where nothing can take its place.
        FileError: the case is not right as it is, or would not be; it stays as it was.
        WriteError: the file system refuses.
    """
    literal = Literal(secret) if secret is not None else None
    try:
        return _redacted(project, path, literal, why, by, at)
    except RegcaseError as error:
        hidden = _hidden(error, literal)
        if hidden is None:
            raise
    # Outside of the handler: the first error, which quotes what it found in a file, is no part of this one.
    raise hidden


def _redacted(
    project: Project,
    path: Path,
    literal: Literal | None,
    why: str | None,
    by: str | None,
    at: datetime | None,
) -> RedactedCase:
    path = path / CASE_FILE if path.is_dir() else path
    if path.name != CASE_FILE:
        raise UsageRefused(
            f"Couldn't redact {shown(path)}: a case file is called {CASE_FILE}, in a folder of its own."
        )
    folder = path.parent
    finished = finish_replacing(folder) if is_half_replaced(folder) else ()
    loaded = load_case(path)
    before = _read_all(folder)
    texts = {name: content.decode("utf-8", "surrogateescape") for name, content in before.items()}
    _refuse_names(literal, folder, texts)
    taken = numbers_taken(texts.values())
    remover: Remover = _Named(literal, taken) if literal is not None else _Patterns(loaded, texts, taken)
    removed: dict[str, int] = {}
    new = dict(_changed(texts, remover, removed))
    nothing = RedactedCase(path, loaded.id, tuple(texts), finished=finished)
    if not removed:
        if literal is not None and not finished:
            raise UsageRefused(_not_found(folder, tuple(texts)), slug="not-found")
        return nothing
    amendment = Amendment(
        what=_what(remover.counts, removed),
        why=_without(literal, why) if why else _FOUND_LATER if literal else _FOUND_BY_PATTERNS,
        who=by or who_acts(project.root, "who redacts the case"),
        at=at or datetime.now(UTC).replace(microsecond=0),
        old_digest=loaded.case.seal.observation if loaded.case.seal is not None else None,
    )
    contents = {name: text.encode("utf-8", "surrogateescape") for name, text in new.items()}
    try:
        text = new.get(CASE_FILE, texts[CASE_FILE])
        contents[CASE_FILE] = _case_text(loaded, text, contents, before, remover, amendment)
        now = replace_files(folder, contents, {name: digest(content) for name, content in before.items()})
    except FileError as error:
        raise UsageRefused(
            f"Couldn't redact {shown(folder)}: without that text it would be no case any more.\n{error.text}\n"
            "Give more of what stands around it."
        ) from None
    return RedactedCase(
        path,
        loaded.id,
        tuple(texts),
        removed,
        dict(sorted(remover.counts.items())),
        amendment,
        now.case.seal.observation if now.case.seal is not None else None,
        loaded.digest_for(None, "live") != load_case(path).digest_for(None, "live"),
        finished,
    )


class _Named:
    """Removes the one secret that a person named."""

    def __init__(self, literal: Literal, taken: dict[str, int]) -> None:
        self.counts: Counter[str] = Counter()
        self._literal = literal
        known = Redactor(numbers_taken=taken)
        self._placeholder = known.text(literal.secret)
        kinds = tuple(known.counts)
        self._kind = kinds[0] if len(kinds) == 1 and self._placeholder.startswith("REDACTED-") else BY_HAND
        if self._kind == BY_HAND:
            self._placeholder = Redactor(numbers_taken=taken).replace(BY_HAND, literal.secret)

    def in_file(self, name: str, text: str) -> str:  # noqa: ARG002 - the same in every file
        return self.outside_values(text)

    def in_value(self, key: Key, value: str) -> str:  # noqa: ARG002 - and at every key
        return self.outside_values(value)

    def outside_values(self, text: str) -> str:
        new, count = self._literal.replaced(text, self._placeholder)
        self.counts[self._kind] += count
        return new


class _Patterns:
    """Removes what the patterns find in what was recorded; people who are named on purpose stay."""

    def __init__(self, loaded: LoadedCase, texts: dict[str, str], taken: dict[str, int]) -> None:
        case = loaded.case
        kept = case.observation.kept
        self._redactor = Redactor(
            keep=Keep([each.what for each in kept], kept[0].why if kept else None), numbers_taken=taken
        )
        self.counts = self._redactor.counts
        self._records = _reply_files(case)
        self._work_tree = f"{case.task.work_tree.rstrip('/')}/" if case.task and case.task.work_tree else None
        for name in texts:
            if name.startswith("recorded/") and not self._is_work_tree(name):
                self._redactor.learn(texts[name])

    def _is_work_tree(self, name: str) -> bool:
        return self._work_tree is not None and name.startswith(self._work_tree)

    def in_file(self, name: str, text: str) -> str:
        if name in self._records:
            return "".join(map(self._line, text.splitlines(keepends=True)))
        if "\0" in text[:8192]:
            return text
        # Work trees are copies of somebody's source, where authors and addresses belong.
        recorded = name.startswith("recorded/") and not self._is_work_tree(name)
        return self._redactor.text(text, persons=recorded)

    def in_value(self, key: Key, value: str) -> str:
        if key[:2] == ("observation", "kept"):
            return value
        return self._redactor.text(value, persons=key[0] == "observation")

    def outside_values(self, text: str) -> str:
        return text

    def _line(self, line: str) -> str:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return line
        if not isinstance(found, dict):
            return line
        cleaned = redact_record(self._redactor, found)
        return line if cleaned == found else canonical_json(cleaned).decode("utf-8", "surrogatepass") + "\n"


def _changed(texts: dict[str, str], remover: Remover, removed: dict[str, int]) -> Iterator[tuple[str, str]]:
    for name, text in texts.items():
        before = remover.counts.total()
        if name == CASE_FILE:
            new = rewrite_strings(text, remover.in_value, remover.outside_values)
        else:
            new = remover.in_file(name, text)
        if new != text:
            removed[name] = remover.counts.total() - before
            yield name, new


def _case_text(
    loaded: LoadedCase,
    text: str,
    contents: dict[str, bytes],
    before: dict[str, bytes],
    remover: Remover,
    amendment: Amendment,
) -> bytes:
    """Return the case file with the new digests and counts, sealed anew, and the amendment at its end."""
    toml = parse_toml(loaded.path, text.encode())
    data, folder = toml.data, loaded.folder
    absent = [name for name in ("observation", "seal") if not isinstance(data.get(name), dict)]
    if absent:
        raise FileError([toml.problem((), f"the table [{name}] would be gone") for name in absent])
    digests: dict[Key, str] = {}
    for name in data["observation"].get("recorded", {}):
        if name in contents:
            digests["observation", "recorded", name] = digest(contents[name])
        elif (folder / name).is_dir():
            replaced = {folder / each: content for each, content in contents.items()}
            digests["observation", "recorded", name] = tree_digest(folder / name, replaced)
    for number, each in enumerate(data.get("evidence", ())):
        name = each.get("file")
        if name in contents and each.get("digest") == digest(before[name]):
            digests["evidence", number, "digest"] = digest(contents[name])
    text = add_redactions(replace_digests(text, digests), remover.counts)
    text = reseal_text(text)
    newline = newline_of(text)
    return (ended(text, newline) + newline + record_text("amendments", amendment, newline)).encode()


def _reply_files(case: RegressionCase) -> frozenset[str]:
    replies = case.replies
    names = (TRANSCRIPT, replies.file if replies else None, replies.after_fault if replies else None)
    return frozenset(name for name in names if name is not None)


def _read_all(folder: Path) -> dict[str, bytes]:
    """Return every plain file of the case, the case file first."""
    found = {CASE_FILE: (folder / CASE_FILE).read_bytes()}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != ".git")
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def _refuse_names(literal: Literal | None, folder: Path, texts: dict[str, str]) -> None:
    held = [name for name in texts if literal is not None and literal.replaced(name, "")[1]]
    if literal is not None and held:
        hidden = ", ".join(literal.replaced(name, "...")[0] for name in held)
        raise UsageRefused(
            f"Couldn't redact {shown(folder)}: the names of files hold the text ({hidden}).\n"
            "Rename them by hand, in the case file too, seal a copy of the case, and try again."
        )


def _not_found(folder: Path, names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return (
        f"Couldn't redact {shown(folder)}: the text is in none of its files, neither as it was given nor escaped"
        f" as in JSON or an address.\nLooked in: {listed}. It may be written otherwise there: give a part of it."
    )


def _what(counts: Counter[str], removed: dict[str, int]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count)
    return f"{REDACTED}{kinds} from {', '.join(removed)}"


def _without(literal: Literal | None, text: str) -> str:
    return literal.replaced(text, "...")[0] if literal is not None else text


def _hidden(error: RegcaseError, literal: Literal | None) -> RegcaseError | None:
    """Return the error without the secret; None where it holds none."""
    if literal is None:
        return None
    text, count = literal.replaced(error.text, "...")
    if not count:
        return None
    hidden = UsageRefused(text, slug=error.slug)
    hidden.exit_code = error.exit_code
    return hidden
