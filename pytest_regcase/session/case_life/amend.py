"""Changes something of a case that is sealed or guarded, and records it: what it was, what it is, who, when, why.

Either makes the change itself, or records one that was made by hand, as git shows it. Whether a change is a
loosening is not asked: whoever compares with an older version asks that. Never prints.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pytest_regcase.case_files import CASE_FILE, LoadedCase, load_case
from pytest_regcase.case_files.editing import append_amendments
from pytest_regcase.case_files.guarded import (
    GUARDED,
    Change,
    appended_since,
    guarded_changes,
    is_amended,
    names_observed,
)
from pytest_regcase.case_files.loading import check_case
from pytest_regcase.case_files.rewriting import set_value
from pytest_regcase.case_files.seal import observation_digest, sealed_version
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.case import Amendment, Observation, RegressionCase
from pytest_regcase.records.session import Transition
from pytest_regcase.session.case_life.life import moment, words
from pytest_regcase.session.plan import check_deadline
from pytest_regcase.session.project.who import who_acts
from pytest_regcase.session.revisions.git_revision import last_commit, open_revision
from pytest_regcase.toml_lines import (
    TOML_LIMIT_BYTES,
    Key,
    TomlFile,
    dotted,
    parse_toml,
    read_toml,
    shown,
    validate,
)

_STOP: Final = "expected_recovery.stop_within_seconds"
_DECIMALS: Final = frozenset({"max_failure_rate", "risk"})
"""Keys whose value is a decimal number as text."""


@dataclass(frozen=True)
class Amended:
    """What was recorded."""

    path: Path
    case_id: str
    amendments: tuple[Amendment, ...]
    counts_anew: bool
    """What a count of live attempts belongs to has changed."""


@dataclass(frozen=True)
class _Edit:
    """A case file before and after a change, and what of it is to be recorded."""

    toml: TomlFile
    text: str
    """The text to write, but for the seal and the amendments."""
    now: LoadedCase
    before: RegressionCase
    changes: tuple[Change, ...]
    unshown: bool = False
    """The observation has changed, and nothing shows what it was."""


def amend_case(
    project: Project,
    path: Path,
    *,
    why: str,
    fields: Sequence[str] = (),
    what: str | None = None,
    since: str | None = None,
    by: str | None = None,
    at: datetime | None = None,
) -> Amended:
    """Set `fields` (each ``KEY=VALUE``) in the case file `path`, or take it as it was edited by hand; record why.

    One ``[[amendments]]`` is appended for each guarded key that is another one now, and an observation that has
    changed is sealed anew. `since` is what an edit by hand is compared with (by default the last commit), read
    where the present commit left it; the observation is compared with the committed version that fits its seal.
    `what` says in words what changed in the observation, instead; it has to where no such version is there.

    Raises:
        UsageRefused: nothing has changed, a key is not guarded, git has nothing to compare with, or the case's
            agent is ended before a new stop budget is over.
        FileError, WriteError: the case would not be right, or its file cannot be written; it stays as it was.
        LedgerError: the ledger cannot be opened.
    """
    from pytest_regcase.session.gate import ledger_for

    path = path / CASE_FILE if path.is_dir() else path
    edit = _by_fields(path, fields) if fields else _by_hand(path, since)
    _check_stop(project, edit)
    by = by or who_acts(project.root, "who amends the case")
    at = moment(edit.now, at)
    why = words(edit.now, why)
    made = tuple(
        Amendment(what=text, why=why, who=by, at=at, old_digest=_old_seal(edit) if observed else None)
        for text, observed in _texts(edit, what)
    )
    with ledger_for(project) as ledger:
        now = append_amendments(path, edit.toml.text, edit.text, made)
        for each in made:
            ledger.add_transition(
                Transition(case_id=now.id, at=at, kind="amended", why=why, who=by, evidence=each.what)
            )
    was = LoadedCase(path, edit.now.folder, edit.before)
    return Amended(path, now.id, made, was.digest_for(None, "live") != now.digest_for(None, "live"))


def _texts(edit: _Edit, what: str | None) -> list[tuple[str, bool]]:
    """What each amendment says, and whether it is of the observation."""
    observed = [each.text for each in edit.changes if each.is_observed]
    others = [(each.text, False) for each in edit.changes if not each.is_observed]
    if what is not None and not observed and not edit.unshown:
        raise UsageRefused(
            f"Couldn't amend {edit.now.id}: --what says what changed in the observation, and nothing did.\n"
            "Leave it out: what changed elsewhere is written down by key."
        )
    if edit.unshown and what is None:
        raise UsageRefused(
            f"Couldn't amend {edit.now.id}: the observation is not what was sealed, and git shows no version that"
            " is.\n"
            "Say with --what which key was changed, from what to what."
        )
    if what is not None:
        # What git shows is written down all the same: a text can name one key and leave out another.
        observed = [
            what,
            *(each.text for each in edit.changes if each.is_observed and not names_observed(what, each.key)),
        ]
    texts = [*((text, True) for text in observed), *others]
    if not texts:
        raise UsageRefused(
            f"Couldn't amend {edit.now.id}: nothing that is sealed or guarded has changed.\n"
            "Change it with --field KEY=VALUE, or edit the file first; --since REF compares with an older commit."
        )
    return texts


def _check_stop(project: Project, edit: _Edit) -> None:
    """Refuse a stop budget that the case's agent cannot be seen to keep, before a session finds that out."""
    agent = project.config.agents.get(edit.now.case.agent)
    if agent is None or not any(each.key == _STOP for each in edit.changes):
        return
    try:
        check_deadline(project, edit.now, edit.now.case.agent, agent)
    except FileError as refused:
        raise UsageRefused(
            f"Couldn't amend {edit.now.id}: {refused.text}.\nNothing was written; raise the deadline first."
        ) from None


def _old_seal(edit: _Edit) -> str:
    return str(edit.toml.data["seal"]["observation"])


# a change that is made here


def _by_fields(path: Path, fields: Sequence[str]) -> _Edit:
    loaded = load_case(path)
    toml = read_toml(path)
    text = toml.text
    for each in fields:
        key, value = _field(each, loaded.case, tomllib.loads(text))
        text = set_value(text, key, value)
    try:
        after = parse_toml(path, text.encode())
    except FileError:
        raise UsageRefused(
            f"Couldn't set {', '.join(fields)} in {shown(path)}: the table is written in a form that nothing can"
            " be added to.\nChange it by hand, then: regcase amend CASE --why ..."
        ) from None
    now = check_case(after, seal=False)
    return _Edit(toml, text, now, loaded.case, guarded_changes(loaded.case, now.case))


def _field(given: str, case: RegressionCase, data: dict[str, Any]) -> tuple[Key, object]:
    """Return the key of ``KEY=VALUE``, as it stands in the file, and the value."""
    name, equals, written = given.partition("=")
    names = _names(name.strip())
    if not equals or not names:
        raise UsageRefused(
            f"Couldn't read --field {given}: allowed is KEY=VALUE, as in expected_recovery.max_retries=5."
        )
    if not any(dotted(names).startswith(f"{table}.") for table in GUARDED) or names[-1] == "cause_status":
        raise UsageRefused(
            f"Couldn't amend {dotted(names)}: it is neither sealed nor guarded.\n"
            f"Guarded are the keys of: {', '.join(GUARDED)}. The cause status is computed, appended records stay,"
            " and anything else is edited in the file."
        )
    key = names
    if names[0] == "hypotheses":
        ids = [each.id for each in case.hypotheses]
        if len(names) < 3 or names[1] not in ids:
            raise UsageRefused(
                f"Couldn't amend {dotted(names)}: a hypothesis is named by its id, as in"
                f" hypotheses.{ids[0] if ids else 'ID'}.simulations.\nIt has: {', '.join(ids) or 'none'}."
            )
        key = ("hypotheses", ids.index(str(names[1])), *names[2:])
    return key, _value(written.strip(), key, data)


def _names(text: str) -> Key:
    try:
        found: Any = tomllib.loads(f"{text} = 0")
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    names: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        ((name, found),) = found.items()
        names.append(name)
    return tuple(names) if found == 0 else ()


def _value(written: str, key: Key, data: dict[str, Any]) -> object:
    """Read a value as TOML; text needs no quotes, and stays text where the old value is text."""
    try:
        found = tomllib.loads(f"value = {written}")
        value = found.pop("value")
    except (tomllib.TOMLDecodeError, RecursionError):
        return written
    if found or isinstance(value, dict):
        raise UsageRefused(
            f"Couldn't set {dotted(key)}: {written!r} is more than one value.\nSet one key at a time."
        )
    is_text = key[-1] in _DECIMALS or isinstance(_at(data, key), str)
    return written if is_text and not isinstance(value, str) else value


def _at(data: Any, key: Key) -> Any:
    try:
        for part in key:
            data = data[part]
    except (KeyError, IndexError, TypeError):
        return None
    return data


# a change that was made by hand


def _by_hand(path: Path, since: str | None) -> _Edit:
    toml = read_toml(path)
    now = check_case(toml, seal=False)
    seal = toml.data.get("seal")
    sealed = seal.get("observation") if isinstance(seal, dict) else None
    if not isinstance(sealed, str):
        raise UsageRefused(
            f"Couldn't amend {now.id}: its observation was never sealed.\nTo seal it: regcase seal {now.id}"
        )
    older = _committed(path, since)
    was_observed, unshown = now.case.observation, False
    if observation_digest(toml.data["observation"]) != sealed:
        version = sealed_version(path, sealed)
        if version is not None:
            was_observed = Observation.model_validate(version.observation)
        # Two spellings of the same (a default that was written down) have other digests and nothing to tell.
        unshown = was_observed == now.case.observation
    elif older is None:
        raise UsageRefused(
            f"Couldn't amend {now.id}: git has no version of {shown(path)} at {since or 'HEAD'} that it could be"
            " compared with.\nName a commit that has one with --since, or take the edit back and have it made:"
            " --field KEY=VALUE."
        )
    before = (older or now.case).model_copy(update={"observation": was_observed})
    amended = appended_since(before, now.case)
    changes = tuple(
        each
        for each in guarded_changes(before, now.case)
        if each.is_observed or not is_amended(each, amended, old_seal=None)
    )
    return _Edit(toml, toml.text, now, before, changes, unshown)


def _committed(path: Path, since: str | None) -> RegressionCase | None:
    """Return the case as the commit has it that `regcase check --against` would compare with."""
    revision = last_commit(path.parent) if since is None else open_revision(path.parent, since)
    name = None if revision is None else revision.inside(path)
    if revision is None or name is None:
        return None
    content = revision.read(revision.files([name]), limit_bytes=TOML_LIMIT_BYTES).get(name)
    if content is None:
        return None
    try:
        return validate(RegressionCase, parse_toml(path, content))
    except FileError as error:
        raise UsageRefused(
            f"Couldn't compare {shown(path)} with its version at {revision.name}: that one does not hold what is"
            f" allowed ({error.problems[0]}).\nName another commit with --since."
        ) from None
