"""What a trial is one of, and where it runs: checked before anything is written.

Knows the shape only. Errors of what stands here reach the caller; nothing of them is recorded as a trial.
"""

import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.base import Many, Record
from pytest_regcase.toml_lines import complaint

_LONGEST_ID: Final = 200


class TrialConfig(Record):
    """The identity and the conditions of a trial. Everything may be left out."""

    run_id: str | None = None
    attempt: Annotated[int, Field(ge=1)] | None = None
    harness: str | None = None
    """Name and version; by default ours."""
    model: str | None = None
    """Also `model_name_or_path` of the prediction."""
    revision: str | None = None
    """Of the agent, such as a commit."""
    task_text: str | None = None
    work_dir: Annotated[Path, Field(strict=False)] | None = None
    """A git work tree that the agent changes: its diff is the patch."""
    base_commit: str | None = None
    """The commit that the patch is made against; by default the one at which the work tree stands at the start."""
    labels: Many[str] = ()
    conditions: dict[str, Any] = Field(default_factory=dict)
    """Limits, seed, versions, concurrency: whatever a reader must know."""


def trial_config(config: "TrialConfig | Mapping[str, Any] | None") -> TrialConfig:
    """Return `config` as checked.

    Raises:
        UsageRefused: an unknown key or a wrong value, with what is allowed (slug ``invalid-config``).
    """
    if config is None:
        return TrialConfig()
    if isinstance(config, TrialConfig):
        return config
    if not isinstance(config, Mapping):
        raise UsageRefused(
            f"Couldn't take the trial's config: it is {type(config).__name__}.\n"
            "Give a TrialConfig or a mapping of its fields.",
            slug="invalid-config",
        )
    try:
        return TrialConfig.model_validate(dict(config))
    except ValidationError as error:
        raise UsageRefused(
            f"Couldn't take the trial's config: {complaint(TrialConfig, error)}.\n"
            f"It may hold: {', '.join(TrialConfig.model_fields)}.",
            slug="invalid-config",
        ) from error


def check_task_id(task_id: object) -> str:
    """Return `task_id` if it can name a task and its folder.

    Raises:
        UsageRefused: it is no text, is empty, or cannot be a folder's name (slug ``invalid-task-id``).
    """
    why_not = why_no_task_id(task_id)
    if why_not is not None:
        raise UsageRefused(
            f"Couldn't take {task_id!r} as a task id: {why_not}.\n"
            f"Give a text of at most {_LONGEST_ID} printable characters that can be a folder's name.",
            slug="invalid-task-id",
        )
    assert isinstance(task_id, str)
    return task_id


def why_no_task_id(task_id: object) -> str | None:
    """Say what is wrong with a task id; None: nothing is."""
    if not isinstance(task_id, str):
        return f"it is {type(task_id).__name__}, not a text"
    if not task_id.strip():
        return "it is empty"
    if task_id != task_id.strip():
        return "it starts or ends with a space"
    if len(task_id.encode("utf-8", "surrogatepass")) > _LONGEST_ID:
        return f"it is longer than {_LONGEST_ID} bytes"
    if not task_id.isprintable() or unicodedata.normalize("NFC", task_id) != task_id:
        return "it holds characters that are not printable, or that some file systems spell differently"
    if "/" in task_id or "\\" in task_id:
        return "it holds a slash"
    return "it starts with a dot or a hyphen" if task_id[0] in ".-" else None
