"""`trial.jsonl` on disk: one record a line, each on the disk before the next thing happens.

Knows bytes, locks and what a full disk does; knows no kind of record. A process that is killed at any moment
leaves at most half a last line, which readers drop and `reopen` removes.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from pytest_regcase.capture.plain_data import plain
from pytest_regcase.errors import UsageRefused, WriteError

TRIAL_FILE: Final = "trial.jsonl"


class TrialFile:
    """The file of one trial, open for appending and locked against a second writer.

    After a record that could not be written, nothing more is: a later one would hide the hole. Every later call
    raises the same `WriteError`.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.failure: WriteError | None = None
        """Why it takes no more records; None: it does."""
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self._records = 0
        # Again by the same thread: a signal handler's exception may be recorded while a record is being written.
        self._lock = threading.RLock()

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Make `folder` and an empty ``trial.jsonl`` in it.

        Raises:
            UsageRefused: there is one already (slug ``trial-exists``).
            WriteError: the file system refuses.
        """
        path = folder / TRIAL_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError as error:
            raise UsageRefused(
                f"Couldn't record a trial in {folder}: {path} exists, and a record is never overwritten.\n"
                "Give another folder, or move that one away.",
                slug="trial-exists",
            ) from error
        except OSError as error:
            raise _not_made(path, error) from error
        made = cls._locked(path, descriptor)
        try:
            sync_folder(folder)
        except OSError as error:
            made.close()
            raise _not_made(path, error) from error
        return made

    @classmethod
    def reopen(cls, folder: Path) -> Self:
        """Open the ``trial.jsonl`` of `folder` to go on with it; half a last line is removed.

        Raises:
            UsageRefused: there is none, or somebody else is writing it (slug ``trial-in-use``).
            WriteError: the file system refuses.
        """
        path = folder / TRIAL_FILE
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError as error:
            raise UsageRefused(
                f"Couldn't go on with the trial in {folder}: there is no {TRIAL_FILE}.\nCheck the folder."
            ) from error
        except OSError as error:
            raise _not_made(path, error) from error
        opened = cls._locked(path, descriptor)
        opened._repair()
        return opened

    @classmethod
    def _locked(cls, path: Path, descriptor: int) -> Self:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise UsageRefused(
                f"Couldn't record a trial in {path.parent}: another process is recording one there.\n"
                "Wait for it, or give another folder.",
                slug="trial-in-use",
            ) from error
        return cls(path, descriptor)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record and wait until the disk has it.

        Raises:
            UsageRefused: the trial has ended.
            WriteError: the file system refuses, now or before. What was written before stays whole.
        """
        # Built first: what an object does when it is asked must not happen under the lock.
        line = json.dumps(plain(record), ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
        with self._lock:
            if self._descriptor < 0:
                raise UsageRefused(
                    f"Couldn't record in {self.path}: the trial has ended.\nRecord inside its block.",
                    slug="trial-ended",
                )
            if self.failure is not None:
                raise self.failure
            try:
                self._write(line)
            except OSError as error:
                self._take_back()
                self.failure = WriteError(
                    f"Couldn't record the trial in {self.path}: {(error.strerror or str(error)).lower()}.\n"
                    f"The {self._records} records before are on the disk. Make room, then run the task again."
                )
                raise self.failure from error
            except BaseException:  # Ctrl-C between two system calls: the line is there as a whole, or not at all
                if os.fstat(self._descriptor).st_size == self._size + len(line):
                    self._size += len(line)
                else:
                    self._take_back()
                raise
            self._size += len(line)
            self._records += 1

    def close(self) -> None:
        """Let go of the file and its lock. May be called again."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        os.fsync(self._descriptor)

    def _take_back(self) -> None:
        """Remove what was written of a record; where even that fails, readers drop half a line."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            return

    def _repair(self) -> None:
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        tail = content[end:]
        if not tail:
            return
        try:
            json.loads(tail)
        except ValueError:
            try:
                os.ftruncate(self._descriptor, end)
            except OSError as error:
                raise _not_made(self.path, error) from error
            self._size = end
            self.append({"kind": "repaired", "dropped_bytes": len(tail)})
        else:  # whole, only its line end is missing
            os.write(self._descriptor, b"\n")
            self._size += 1


def records_in(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a ``trial.jsonl`` in order; half a last line, or one that is no object, is left out.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows which files `folder` holds.

    Raises:
        OSError: the file system refuses.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _not_made(path: Path, error: OSError) -> WriteError:
    return WriteError(
        f"Couldn't record a trial in {path}: {(error.strerror or str(error)).lower()}.\n"
        "Check the folder, its permissions and the disk."
    )
