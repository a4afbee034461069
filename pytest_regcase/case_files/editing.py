"""Edits a case file that is there: seals it, and adds records at its end.

Text is added, not regrouped: the bytes before it stay as they are. Every edit is read and checked again before the
old file is replaced, so that a refused edit leaves the file untouched.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_regcase.case_files.loading import LoadedCase, check_case
from pytest_regcase.case_files.places_on_disk import CASE_FILE, alone, replace_file
from pytest_regcase.case_files.rendering import inline_text, record_text
from pytest_regcase.case_files.seal import APPENDED, ended, newline_of, observation_digest, reseal_text, seal_text
from pytest_regcase.errors import FileError, UnknownName, UsageRefused, did_you_mean
from pytest_regcase.records.base import Record
from pytest_regcase.records.case import Amendment, RegressionCase, Withdrawal
from pytest_regcase.toml_lines import TOML_LIMIT_BYTES, parse_toml, read_bounded, read_toml, shown, validate


class Sealed(NamedTuple):
    """What sealing did."""

    path: Path
    digest: str
    changed: bool
    """False: it was sealed already, on the same observation."""


def seal_case(path: Path) -> Sealed:
    """Seal the observation of the case file `path`.

    Everything else about the case must be right: what is sealed is meant to stay.

    Raises:
        FileError: the file, or one beside it, holds something that is not allowed.
        UsageRefused: it is sealed, and the observation is another one now.
    """
    path = _case_file(path)
    toml = read_toml(path)
    check_case(toml, seal=False)
    digest = observation_digest(toml.data["observation"])
    try:
        sealed = seal_text(toml.text)
    except UsageRefused as error:
        raise UsageRefused(f"{shown(path)}: {error.text}", slug=error.slug) from None
    if sealed == toml.text:
        return Sealed(path, digest, changed=False)
    _replace(path, toml.text, sealed)
    return Sealed(path, digest, changed=True)


def append_record(path: Path, table: str, record: Record, *, seen: RegressionCase | None = None) -> LoadedCase:
    """Add `record` at the end of the case file as one ``[[table]]``, and return the case as it is then.

    The old bytes stay a prefix of the new file. The one exception is evidence that changes what the cause status
    computes to: that word is then replaced where it stands. `seen` is the case that the record was decided on.

    Raises:
        UsageRefused: the case is no longer what was `seen`, so the record may not fit it.
        SealError, FileError: the case is not right as it is, or would not be with the record; it stays as it was.
    """
    if table not in APPENDED:
        raise UsageRefused(f"Couldn't append to [{table}]: only {', '.join(APPENDED)} are appended.")
    path = _case_file(path)
    toml = read_toml(path)
    now = check_case(toml).case
    if seen is not None and now != seen:
        raise _changed_meanwhile(path)
    newline = newline_of(toml.text)
    text = ended(toml.text, newline) + newline + record_text(table, record, newline)
    _check_appended(path, table, text)
    if table == "evidence":
        text = _with_cause_status(path, text)
    return _replace(path, toml.text, text)


def append_amendments(path: Path, old: str, new: str, amendments: Sequence[Amendment]) -> LoadedCase:
    """Replace the text `old` of the case file `path` by `new`, sealed anew, with `amendments` at its end.

    Raises:
        FileError: the case would not be right; it stays as it was.
        UsageRefused: the file was changed meanwhile, or holds amendments in a form that nothing can be added to.
    """
    newline = newline_of(new)
    text = ended(reseal_text(new), newline)
    for each in amendments:
        text += newline + record_text("amendments", each, newline)
        _check_appended(path, "amendments", text)
    return _replace(path, old, text)


def _check_appended(path: Path, table: str, text: str) -> None:
    try:
        parse_toml(path, text.encode())
    except FileError:
        # It was read just now, so only what was added can be wrong; its line would be one that is not there.
        raise UsageRefused(
            f"Couldn't append to [[{table}]] in {shown(path)}: {table} is written there in a form that nothing can"
            f" be added to.\nWrite it as [[{table}]] tables at the end of the file, or take it out if it is empty."
        ) from None


def withdraw_evidence(path: Path, evidence_id: str, withdrawal: Withdrawal) -> LoadedCase:
    """Add `withdrawn` to one ``[[evidence]]`` of the case file, and return the case as it is then.

    Nothing is taken out: the citation stays readable, and stands for nothing from here on. The cause status is
    computed anew in the same edit.

    Raises:
        UnknownName: the case has no such evidence; what it has is listed.
        UsageRefused: it is withdrawn already, or written in a form that nothing can be added to.
        SealError, FileError: the case is not right as it is; it stays as it was.
    """
    path = _case_file(path)
    toml = read_toml(path)
    found = check_case(toml).case.evidence
    at = next((number for number, each in enumerate(found) if each.id == evidence_id), None)
    if at is None:
        raise UnknownName(
            f"Couldn't withdraw {evidence_id!r}: {shown(path)} has no evidence of that id.\n"
            f"{did_you_mean(evidence_id, [each.id for each in found])}"
            f"It has: {', '.join(each.id for each in found) or 'none'}."
        )
    before = found[at].withdrawn
    if before is not None:
        raise UsageRefused(
            f"Couldn't withdraw {evidence_id}: {before.who} withdrew it already ({before.why}).\n"
            "Nothing was changed."
        )
    ends = [
        span.end for key, span in toml.places().values.items() if key[:2] == ("evidence", at) and len(key) == 3
    ]
    if not ends:
        raise UsageRefused(
            f"Couldn't withdraw {evidence_id} in {shown(path)}: evidence is written there in a form that nothing"
            " can be added to.\nWrite it as [[evidence]] tables at the end of the file."
        )
    newline = newline_of(toml.text)
    end = toml.text.find("\n", max(ends))
    head = toml.text[: end + 1] if end >= 0 else ended(toml.text, newline)
    text = head + inline_text("withdrawn", withdrawal) + newline + toml.text[len(head) :]
    return _replace(path, toml.text, _with_cause_status(path, text))


def _with_cause_status(path: Path, text: str) -> str:
    toml = parse_toml(path, text.encode())
    case = validate(RegressionCase, toml)
    span = toml.places().values.get(("observation", "cause_status"))
    if span is None or case.cause_status == case.computed_cause_status:
        return text
    return f'{text[: span.start]}"{case.computed_cause_status}"{text[span.end :]}'


def _replace(path: Path, old: str, new: str) -> LoadedCase:
    content = new.encode()
    loaded = check_case(parse_toml(path, content))
    with alone(path.parent):
        if read_bounded(path, TOML_LIMIT_BYTES) != old.encode():
            raise _changed_meanwhile(path)
        replace_file(path, content)
    return loaded


def _changed_meanwhile(path: Path) -> UsageRefused:
    return UsageRefused(f"Couldn't edit {shown(path)}: it was changed meanwhile.\nTry again.")


def _case_file(path: Path) -> Path:
    return path / CASE_FILE if path.is_dir() else path
