"""Exports, spools and other ledgers, into and out of the project's ledger. Knows the files; never prints."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import ValidationError

from pytest_regcase.errors import FileError, UsageRefused, WriteError
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.toml_lines import shown

if TYPE_CHECKING:
    from pytest_regcase.ledger.merge import Brought
    from pytest_regcase.ledger.store import Ledger

SPOOL_FILE = "not-in-the-ledger.jsonl"
"""In a session's folder: the attempts that its ledger did not take, one JSON record a line."""
_LONGEST_LINE = 64 * 1024 * 1024


class BroughtIn(NamedTuple):
    """What became of one file or ledger."""

    name: str
    kind: Literal["export", "spool", "ledger"]
    brought: "Brought"
    notices: tuple[str, ...] = ()


def write_export(ledger: "Ledger", file: IO[str]) -> int:
    """Write the ledger as JSON Lines; return how many attempts it has.

    Raises:
        LedgerError: it cannot be read; what was written until then has no last line, and `import` refuses it.
    """
    from pytest_regcase.ledger.export import export_lines

    attempts = 0
    for line in export_lines(ledger):
        file.write(json.dumps(line, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n")
        attempts += line["kind"] == "attempt"
    return attempts


def export_to(ledger: "Ledger", path: Path) -> int:
    """Write the export to `path`, whole or not at all; return how many attempts it has.

    Raises:
        WriteError: it cannot be written there.
        LedgerError: the ledger cannot be read.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            attempts = write_export(ledger, file)
        unfinished.replace(path)
    except OSError as error:
        raise WriteError(
            f"Couldn't write {shown(path)}: {error.strerror or error}.\n"
            "Give a file in a folder that can be written."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return attempts


def import_file(ledger: "Ledger", path: Path) -> BroughtIn:
    """Bring in an export of a ledger, or the spool of a session that lost its ledger; all of it or nothing.

    Raises:
        FileError: it is neither, or a line of it is wrong.
        UsageRefused: it has another record of an attempt that is here.
        LedgerError: the ledger cannot be written.
    """
    from pytest_regcase.ledger.merge import BadLine, import_records, merge_lines

    reader = _Reader(path)
    if reader.is_export():
        try:
            return BroughtIn(shown(path), "export", merge_lines(ledger, reader.objects))
        except BadLine as error:
            raise reader.refused(str(error)) from error
    records = tuple(reader.records())
    return BroughtIn(shown(path), "spool", import_records(ledger, records), tuple(reader.notices))


def merge_ledger(ledger: "Ledger", place: str) -> BroughtIn:
    """Bring in everything that the ledger at `place`, a file or a URL, holds.

    Raises:
        UsageRefused: there is no such file, it is this very ledger, or it has another record of an attempt here.
        LedgerError: one of the two cannot be opened, read or written.
    """
    from pytest_regcase.ledger.engine import shown as shown_url
    from pytest_regcase.ledger.export import export_lines
    from pytest_regcase.ledger.merge import merge_lines
    from pytest_regcase.ledger.store import Ledger

    url = place if "://" in place else f"sqlite:///{Path(place).absolute()}"
    other = Ledger.open_if_there(url)
    if other is None:
        raise UsageRefused(
            f"Couldn't merge {place}: there is no such file.\nGive the file of a ledger, or its URL. An export is"
            " brought in by: regcase ledger import FILE"
        )
    with other:
        if other.database.url == ledger.database.url:
            raise UsageRefused(
                f"Couldn't merge {place}: it is this very ledger.\nName the ledger to be merged into by"
                " REGCASE_LEDGER, and the others here."
            )
        brought = merge_lines(ledger, lambda: export_lines(other))
    return BroughtIn(shown_url(other.database.url) if "://" in place else place, "ledger", brought)


class _Reader:
    """One file of JSON Lines, read line by line; it knows where it is when something is wrong."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = 0
        self.notices: list[str] = []

    def is_export(self) -> bool:
        first = next(iter(self.objects()), None)
        return first is not None and first.get("kind") == "ledger"

    def objects(self, *, half_last: bool = False) -> Iterator[dict[str, Any]]:
        """Yield every line's object; a last line that was cut off is left out and said, where that is allowed."""
        self._line = 0
        try:
            with self._path.open("rb") as file:
                while line := file.readline(_LONGEST_LINE):
                    self._line += 1
                    found = self._object(line, may_be_half=half_last)
                    if found is not None:
                        yield found
        except OSError as error:
            raise FileError([f"{shown(self._path)}: {error.strerror or error}"]) from error

    def records(self) -> Iterator[AttemptRecord]:
        """Yield the attempts of a spool.

        Raises:
            FileError: it holds something else.
        """
        for each in self.objects(half_last=True):
            try:
                yield AttemptRecord.model_validate_json(json.dumps(each))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                place = ".".join(map(str, first["loc"]))
                raise self.refused(f"it is no attempt ({place}: {first['msg']})") from error

    def refused(self, why: str) -> FileError:
        return FileError(
            [
                f"{shown(self._path)}:{self._line}: {why}; nothing of the file was brought in.",
                "Give an export (regcase ledger export), or the file that a session left where its ledger failed.",
            ],
            slug="ledger-import",
        )

    def _object(self, line: bytes, *, may_be_half: bool) -> dict[str, Any] | None:
        if not line.strip():
            return None
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            if may_be_half and not line.endswith(b"\n") and self._line > 1:
                self.notices.append(
                    f"line {self._line} was cut off and is left out: its attempt counts as not run"
                )
                return None
            raise self.refused("it is no line of JSON") from None
        if not isinstance(found, dict):
            raise self.refused("it is no JSON object")
        return found
