"""The seal of an observation, and what can be said when it is broken.

The seal finds slips; it is not a signature. It covers what the file holds, as tomllib reads it: a default that a
later version adds changes nothing, and neither does the spelling of an equal instant.
"""

import os
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.canonical import canonical_json, digest_of
from pytest_regcase.toml_lines import Key, TomlFile, dotted, places_of

APPENDED = ("evidence", "fix", "closed", "reopened", "retired", "amendments")
"""The tables that are only ever added at the end of a case file."""

_COMMITS_LOOKED_AT = 50
_GIT_SECONDS = 10


def observation_digest(observation: Mapping[str, Any]) -> str:
    """Return the digest of an ``[observation]`` table as tomllib reads it, without its cause status."""
    return digest_of({key: value for key, value in observation.items() if key != "cause_status"})


def newline_of(text: str) -> str:
    """Return the line ending that `text` uses."""
    return "\r\n" if "\r\n" in text else "\n"


def seal_text(text: str) -> str:
    """Return the text of a case file with its ``[seal]``, put just before the appended records.

    Sealing what is sealed already changes nothing. A seal that is no digest (a placeholder) is replaced.

    Raises:
        UsageRefused: it is sealed, and the observation is another one now.
    """
    data = tomllib.loads(text)
    wanted = observation_digest(data["observation"])
    seal = data.get("seal")
    found = seal.get("observation") if isinstance(seal, dict) else None
    if found == wanted:
        return text
    if isinstance(found, str) and found.startswith("sha256:") and len(found) == len(wanted):
        raise UsageRefused(
            "Couldn't seal the observation: it is sealed already, and is not what was sealed"
            f" ({found} then, {wanted} now).\n"
            "Take the edit back. What was observed is never edited, only amended (`regcase amend`).",
            slug="broken-seal",
        )
    places = places_of(text)
    newline = newline_of(text)
    value = places.values.get(("seal", "observation"))
    if value is not None:
        return f'{text[: value.start]}"{wanted}"{text[value.end :]}'
    header = next((span for key, span in places.headers if key == ("seal",)), None)
    if header is not None:
        return f'{text[: header.end]}{newline}observation = "{wanted}"{text[header.end :]}'
    if seal is not None:
        raise UsageRefused(
            "Couldn't seal the observation: it has a seal that is no [seal] table.\n"
            "Take it out; `regcase seal` writes it."
        )
    block = f'[seal]{newline}observation = "{wanted}"{newline}'
    first = next((span.start for key, span in places.headers if key[0] in APPENDED), None)
    if first is None:
        return ended(text, newline) + newline + block
    at = above_comments(text, first)
    before = text[:at]
    gap = "" if not before or before.endswith(newline * 2) else newline
    return f"{before}{gap}{block}{newline}{text[at:]}"


def ended(text: str, newline: str) -> str:
    """Return `text` with a line ending after its last line."""
    return text if not text or text.endswith("\n") else text + newline


def above_comments(text: str, at: int) -> int:
    """Return where the comment lines begin that stand directly above: they belong to what follows.

    `at` is the start of a line.
    """
    while at > 0:
        start = text.rfind("\n", 0, at - 1) + 1
        if not text[start:at].lstrip().startswith("#"):
            break
        at = start
    return at


def reseal_text(text: str) -> str:
    """Return the text of a sealed case file with the digest of its observation as it is now.

    Only for an edit that an amendment records; anything else is what the seal is there to find.
    """
    wanted = observation_digest(tomllib.loads(text)["observation"])
    value = places_of(text).values["seal", "observation"]
    return f'{text[: value.start]}"{wanted}"{text[value.end :]}'


class Difference(NamedTuple):
    """One key of the observation that is not what was sealed."""

    key: Key
    sealed: str | None
    found: str | None


class SealedVersion(NamedTuple):
    """A committed version of the file whose observation is the sealed one."""

    commit: str
    observation: dict[str, Any]


def broken_seal(toml: TomlFile, sealed: str) -> list[str]:
    """Return the lines that say where an observation differs from what was sealed.

    The digest alone cannot show a field, so git's history is asked for a version that has the sealed digest.
    """
    observation = toml.data["observation"]
    lines = [
        toml.problem(
            ("observation",),
            f"[observation] is not what was sealed (sealed {sealed}, found {observation_digest(observation)});"
            " it is never edited, only amended (`regcase amend`)",
        )
    ]
    version = sealed_version(toml.path, sealed)
    if version is None:
        start, end = _lines_of_observation(toml)
        names = ", ".join(key for key in observation if key != "cause_status")
        lines.append(
            toml.problem(
                ("observation",),
                f"a digest cannot tell which key changed, and git has no version that fits the seal: compare"
                f" lines {start} to {end} ({names}) with what was recorded, and take the edit back",
            )
        )
        return lines
    for each in _differences(version.observation, observation):
        name = dotted(("observation", *each.key))
        was = f"sealed as {each.sealed}" if each.sealed is not None else "not there when it was sealed"
        now = f"is {each.found}" if each.found is not None else "is gone"
        lines.append(
            toml.problem(
                ("observation", *each.key),
                f"{name} {now}; it was {was} (commit {version.commit}); take the edit back",
            )
        )
    return lines


def sealed_version(path: Path, sealed: str) -> SealedVersion | None:
    """Return the newest committed version of `path` whose observation has the digest `sealed`.

    None where git is not there, does not know the file, or has no such version among the last 50.
    """
    commits = _git(path.parent, "log", f"--max-count={_COMMITS_LOOKED_AT}", "--format=%h", "--", path.name)
    for commit in (commits or "").split():
        text = _git(path.parent, "show", f"{commit}:./{path.name}")
        try:
            observation = tomllib.loads(text or "").get("observation")
            if isinstance(observation, dict) and observation_digest(observation) == sealed:
                return SealedVersion(commit, observation)
        except (ValueError, RecursionError):
            continue
    return None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _differences(sealed: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    before, after = dict(_leaves(sealed, ())), dict(_leaves(found, ()))
    for key in sorted({*before, *after}, key=dotted):
        if key[0] != "cause_status" and before.get(key) != after.get(key):
            yield Difference(key, before.get(key), after.get(key))


def _leaves(table: Mapping[str, Any], key: Key) -> Iterator[tuple[Key, str]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*key, name))
        else:
            text = canonical_json(value).decode("utf-8", "replace")
            yield (*key, name), text if len(text) <= 120 else text[:117] + "..."


def _lines_of_observation(toml: TomlFile) -> tuple[int, int]:
    places = toml.places()
    start = places.line(("observation",)) or 1
    mine = [offset for key, offset in places.keys.items() if key[:1] == ("observation",)]
    mine += [span.end for key, span in places.values.items() if key[:1] == ("observation",)]
    return start, places.line_at(max(mine, default=0))
