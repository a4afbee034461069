"""tau2-bench results: one JSON document, or `results.json` with `simulations/<id>.json` beside it.

Knows where the trials of a run lie; what one simulation says is in `tau2_simulation`. Field names after the
benchmark's own `data_model/simulation.py`. Must import no other importer.

What surprises: in the folder form `results.json` holds no trial at all, and its index may name simulations
whose file is not there; a run still going on has fewer simulations than tasks.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.json_shape import shape_of
from pytest_regcase.importers.last_document import LastDocument
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    digests_of,
    filled,
    mapping,
    read_head,
    refused,
    sequence,
    whole,
)
from pytest_regcase.importers.tau2_simulation import Simulation
from pytest_regcase.records.trial import Trial, TrialRef

_METADATA: Final = "results.json"
_FOLDER: Final = "simulations"


class Tau2:
    """Importer of tau2-bench results: one trial a simulation."""

    name = "tau2"

    def __init__(self) -> None:
        self._document = LastDocument()

    def handles(self, peek: Peek) -> bool:
        """Say whether it is a tau2 run (info of an agent and a simulated user, tasks), or one simulation of it."""
        if peek.kind == "file":
            return _is_run(peek.head) or _is_simulation(peek.head)
        if peek.kind == "folder" and _METADATA in peek.members:
            try:
                return _is_run(read_head(peek.path / _METADATA))
            except ImportRefused:
                return False
        return False

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield a reference to each simulation, those that the index names and that are not there too."""
        run = _Run(source, self._document)
        keys = set()
        for key, simulation in run.simulations():
            keys.add(key)
            yield (
                simulation.ref(key) if simulation is not None else _without_record(key, {}, "its file is damaged")
            )
        for entry in run.index:
            named = filled(entry.get("id"))
            if named is not None and named not in keys:
                yield _without_record(named, entry, "the run's index names it, and its file is not there")

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one simulation."""
        run = _Run(source, self._document)
        for key, simulation in run.simulations(ref.key):
            if key == ref.key and simulation is not None:
                return simulation.trial(Tau2.name, run.info, run.digests(key), run.notes)
        raise refused("no-such-trial", source, f"no simulation in it is {ref.key}", "List it again.")


class _Run:
    """Where the simulations of one source are."""

    def __init__(self, source: Path, document: LastDocument) -> None:
        self._metadata = source / _METADATA if source.is_dir() else source
        parsed = document.read(self._metadata)
        content = mapping(parsed.value)
        self.notes = parsed.notes
        self._single = content if "termination_reason" in content else None
        self.info = mapping(content.get("info")) if self._single is None else {}
        self.index = [mapping(each) for each in sequence(content.get("simulation_index"))]
        self._inline = content.get("simulations")

    def simulations(self, wanted: str | None = None) -> Iterator[tuple[str, Simulation | None]]:
        """Yield (key, simulation); None for a file that cannot be read. Of a folder, only `wanted` is opened."""
        if self._single is not None:
            simulation = Simulation(self._single, "simulation")
            yield simulation.id or "simulation", simulation
        elif isinstance(self._inline, list):
            seen = set()
            for number, each in enumerate(self._inline):
                simulation = Simulation(mapping(each), f"simulations[{number}]")
                key = simulation.id or f"simulation-{number}"
                key = key if key not in seen else f"{key}#{number}"
                seen.add(key)
                yield key, simulation
        else:
            for key, path in self._files().items():
                if wanted in (None, key):
                    try:
                        content = mapping(LastDocument().read(path).value)
                    except ImportRefused:
                        yield key, None
                    else:
                        yield key, Simulation(content, "simulation")

    def digests(self, key: str) -> dict[str, str]:
        """Return the digests of the files that hold a simulation and what is said of its run."""
        own = self._files().get(key) if self._single is None and not isinstance(self._inline, list) else None
        return {**digests_of(self._metadata), **(digests_of(own) if own is not None else {})}

    def _files(self) -> dict[str, Path]:
        folder = self._metadata.parent / _FOLDER
        try:
            found = sorted(folder.iterdir()) if folder.is_dir() else []
        except OSError as error:
            why = (error.strerror or "it cannot be read").lower()
            raise refused("unreadable", folder, why, "Check its permissions.") from error
        return {
            each.stem: each
            for each in found
            if each.suffix == ".json" and each.is_file() and not each.is_symlink()
        }


def _without_record(key: str, entry: Mapping[str, Any], why_not: str) -> TrialRef:
    return TrialRef(
        key=key,
        task_id=filled(entry.get("task_id")),
        attempt=whole(entry.get("trial")),
        why_not=why_not,
        refusal="no-record" if entry else "corrupt",
    )


def _is_run(head: bytes) -> bool:
    shape = shape_of(head)
    # Policy and tasks may fill the whole head, so that `simulations` is not seen.
    known = "info" in shape.keys and not shape.keys.isdisjoint(("timestamp", "tasks"))
    return shape.kind == "object" and known and b'"agent_info"' in head and b'"user_info"' in head


def _is_simulation(head: bytes) -> bool:
    shape = shape_of(head)
    return shape.kind == "object" and {"id", "task_id", "termination_reason", "reward_info"} <= shape.keys
