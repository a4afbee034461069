"""Importers for tests: reports that wait for a trajectory, folders taken as a whole, logs that break."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import digests_of, refused
from pytest_regcase.records.trial import TranscriptLine, Trial, TrialRef


class Plain:
    """A file with `REF` in its first line and a reference a line: JSON objects as `TrialRef` has them."""

    name = "plain"

    def handles(self, peek: Peek) -> bool:
        return peek.kind == "file" and peek.first_line == b"REF"

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        for line in source.read_text().splitlines()[1:]:
            if line == "BROKEN":
                raise refused("corrupt", source, "its end is broken", "Copy it again.")
            if line == "MALFORMED":
                TrialRef.model_validate({"key": 1})
            yield TrialRef.model_validate(json.loads(line))

    def read(self, source: Path, ref: TrialRef) -> Trial:
        steps: tuple[TranscriptLine, ...] = ()
        if ref.joins_by is None:
            steps = (TranscriptLine(step=1, role="assistant", text=f"reply of {ref.key}"),)
        return Trial(
            format=self.name,
            event_id=f"{source.name}:{ref.key}",
            event_id_from="recorded",
            task_id=ref.task_id,
            attempt=ref.attempt,
            outcome=ref.outcome,
            termination=ref.termination,
            steps=steps,
            failing_step=1 if steps else None,
            source_digests=digests_of(source),
        )


class Whole(Plain):
    """A folder that holds a file `whole`, taken as a whole."""

    name = "whole"

    def handles(self, peek: Peek) -> bool:
        return peek.kind == "folder" and "whole" in peek.members

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        yield from super().list_trials(source / "whole")

    def read(self, source: Path, ref: TrialRef) -> Trial:
        return super().read(source / "whole", ref)


@pytest.fixture
def sample_importers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register them beside ours."""
    names, load = registry.names, registry.load
    ours = {"plain": Plain, "whole": Whole}
    monkeypatch.setattr(registry, "names", lambda group: {**names(group), **dict.fromkeys(ours)})
    monkeypatch.setattr(registry, "load", lambda group, name: ours.get(name) or load(group, name))


def log(path: Path, *refs: dict[str, Any] | str) -> Path:
    """Write a file for `Plain`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (each if isinstance(each, str) else json.dumps(each) for each in refs)
    path.write_text("\n".join(["REF", *lines]) + "\n")
    return path


def failed(key: str = "t", **facts: Any) -> dict[str, Any]:
    """A reference to a failed trial."""
    return {"key": key, "failed": True, "outcome": "failed", "termination": "finished", **facts}
