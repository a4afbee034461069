"""Cites lower-level evidence in a case and withdraws it: the only way to a cause status other than unknown.

The order of the stages: read the lines, refuse what is no evidence, redact, append. Never prints.
"""

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_regcase.case_files import LoadedCase, append_record, load_case, withdraw_evidence
from pytest_regcase.config import Project
from pytest_regcase.errors import ClaimRefused, UsageRefused
from pytest_regcase.evidence.citing import (
    QUOTE_LIMIT,
    Place,
    check_exclusive,
    check_hypothesis,
    check_not_there,
    next_id,
    parse_place,
)
from pytest_regcase.evidence.compare import Stance
from pytest_regcase.evidence.entries import Log
from pytest_regcase.evidence.log_lines import LogUnreadable, inflated_digest, read_head, read_lines
from pytest_regcase.evidence.window import Window, shown_time, window_of_observation
from pytest_regcase.importers.reading import digest_file, printable
from pytest_regcase.records.case import Evidence, Withdrawal
from pytest_regcase.records.words import CauseStatus
from pytest_regcase.redaction import Redactor, numbers_taken
from pytest_regcase.session.case_life.life import words
from pytest_regcase.session.case_life.own_products import Cited, attached_name, look_for_own
from pytest_regcase.session.project.who import who_acts
from pytest_regcase.toml_lines import shown

_LINES_ABOVE = 3


@dataclass(frozen=True)
class Written:
    """A citation that was added or withdrawn, and what became of the cause status."""

    path: Path
    case_id: str
    evidence: Evidence
    before: CauseStatus
    after: CauseStatus
    redactions: dict[str, int]
    notices: tuple[str, ...] = ()


def cite(
    project: Project,
    path: Path,
    *,
    hypothesis: str,
    stance: Stance,
    place: str,
    why: str,
    why_outside: str | None = None,
    who: str | None = None,
    at: datetime | None = None,
) -> Written:
    """Append a citation of the lines that `place` (``FILE:LINES``) names to the case file `path`.

    The cause status is computed anew in the same edit. Whether the file is genuine is not known here.

    Raises:
        FileError, SealError: the case is not right as it is.
        UnknownName: it has no such hypothesis.
        UsageRefused: the file cannot be read, is no text or has no such lines, or they are cited already.
        ClaimRefused: our own runs produced it; its lines are not of the observation's time and nobody says why
            they count all the same; or a hypothesis that excludes this one is supported.
    """
    loaded = load_case(path)
    check_hypothesis(loaded.case, hypothesis)
    named = parse_place(place)
    file = Path(named.file)
    cited = _read(file, named)
    own = look_for_own(project, loaded, cited)
    if own.why_own is not None:
        raise ClaimRefused(
            printable(
                f"Couldn't cite {place}: {own.why_own}.\nWhat our own runs produced is never evidence of what"
                " happened in the trial. Cite the log of the server, the kernel or the network of that time."
            ),
            slug="own-product",
        )
    if stance == "supports":
        check_exclusive(loaded.case, hypothesis)
    log, outside = _place_in_time(loaded, file, named)
    if outside is not None and why_outside is None:
        raise ClaimRefused(
            printable(
                f"Couldn't cite {place}: {outside}.\nIf they count all the same, say why: --why-outside TEXT."
            ),
            slug="outside-the-window",
        )
    redactor = Redactor(numbers_taken=numbers_taken([loaded.path.read_text(encoding="utf-8")]))
    quote = _quote(place, cited, redactor)
    evidence = Evidence(
        id=next_id(loaded.case),
        hypothesis=hypothesis,
        stance=stance,
        file=_file_name(project, loaded, file, redactor),
        lines=named.lines,
        digest=cited.digest,
        quote=quote,
        why=redactor.text(why),
        why_outside=redactor.text(why_outside) if why_outside and outside is not None else None,
        who=who or who_acts(project.root, "who cites the evidence"),
        at=at or _now(),
    )
    check_not_there(loaded.case, evidence)
    now = append_record(loaded.path, "evidence", evidence, seen=loaded.case)
    notices = []
    if log.form.form == "nothing":
        what = log.form.says.removesuffix(": nothing in it counts")
        notices.append(f"{evidence.file} is {what}: to `regcase compare` it shows nothing of a server or a kernel")
    if not own.all_kept:
        notices.append("not everything that attempts have kept was looked through for a copy: it is too much")
    return Written(
        loaded.path,
        loaded.id,
        evidence,
        loaded.case.computed_cause_status,
        now.case.computed_cause_status,
        dict(sorted(redactor.counts.items())),
        tuple(notices),
    )


def withdraw(
    project: Project,
    path: Path,
    evidence_id: str,
    *,
    why: str,
    who: str | None = None,
    at: datetime | None = None,
) -> Written:
    """Withdraw one citation: it stays in the file, and stands for nothing from here on.

    Raises:
        FileError, SealError: the case is not right as it is.
        UnknownName: it has no such evidence.
        UsageRefused: it is withdrawn already.
    """
    loaded = load_case(path)
    by = who or who_acts(project.root, "who withdraws the evidence")
    now = withdraw_evidence(loaded.path, evidence_id, Withdrawal(why=words(loaded, why), who=by, at=at or _now()))
    evidence = next(each for each in now.case.evidence if each.id == evidence_id)
    before, after = loaded.case.computed_cause_status, now.case.computed_cause_status
    return Written(loaded.path, loaded.id, evidence, before, after, {})


def window_of_case(loaded: LoadedCase) -> Window | None:
    """Return the time of the case's observation, with the usual skew; None where none is recorded."""
    return window_of_observation(loaded.case.observation, loaded.transcript() or ())


def _read(file: Path, place: Place) -> Cited:
    above: deque[bytes] = deque(maxlen=_LINES_ABOVE)
    lines: list[bytes] = []
    number = 0
    try:
        was = file.stat() if file.is_file() else None
        head = read_head(file)
        for number, raw in read_lines(file):
            if number < place.first:
                above.append(raw)
            elif number <= place.last:
                lines.append(raw)
            else:
                break
        found, inflated = digest_file(file), inflated_digest(file)
        now = file.stat()
    except LogUnreadable as error:
        raise _refused(place, error.why, error.what_to_do) from error
    except OSError as error:
        raise _refused(place, (error.strerror or str(error)).lower(), "Check the file.") from error
    if was is None or (was.st_ino, was.st_size, was.st_mtime_ns) != (now.st_ino, now.st_size, now.st_mtime_ns):
        raise _refused(place, "it was changed while it was read", "Copy it to a file that stays, and cite that.")
    if head and not was.st_size:
        # As below /proc: another reading gives another text, and no digest of it can be checked again.
        raise _refused(place, "it is no stored file", "Save what it says to a file, and cite that.")
    if len(lines) <= place.last - place.first:
        raise _refused(place, f"the file has {number} lines", "Name lines that it has.", slug="no-such-lines")
    if any(b"\0" in each for each in lines) or (b"\0" in head[:8192] and not head.startswith(b"__CURSOR=")):
        raise _refused(place, "the file is no text", "Have it written out as text, and cite that.", slug="no-text")
    if not any(each.strip() for each in lines):
        raise _refused(place, "the lines are empty", "Name the lines that show it.", slug="no-such-lines")
    return Cited(file, found, inflated, head.decode("utf-8", "replace"), lines, list(above))


def _place_in_time(loaded: LoadedCase, file: Path, place: Place) -> tuple[Log, str | None]:
    """Return the log, and why its lines cannot be told to be of the observation's time; None where they can."""
    window = window_of_case(loaded)
    try:
        log = Log.open(file)
        if window is None:
            return log, "the observation records no time, so nothing can be told to be of it"
        times = []
        for entry in log.entries(window.end):
            if entry.first > place.last:
                break
            if entry.last >= place.first and entry.at is not None:
                times.append(entry.at)
    except LogUnreadable as error:
        raise _refused(place, error.why, error.what_to_do) from error
    if not times:
        return log, "its lines cannot be placed in time: neither they nor a line above them begin with one"
    if any(map(window.holds, times)):
        return log, None
    when = " to ".join(dict.fromkeys((shown_time(min(times)), shown_time(max(times)))))
    return log, f"its lines are of {when}, and the observation is of {window.says}"


def _quote(place: str, cited: Cited, redactor: Redactor) -> str:
    text = "".join(each.decode("utf-8", "replace") for each in cited.lines)
    redactor.learn(cited.head)
    redactor.learn(text)
    quote = "\n".join(printable(redactor.text(text).expandtabs(4)).splitlines()).strip("\n")
    if len(quote) > QUOTE_LIMIT:
        raise UsageRefused(
            printable(
                f"Couldn't cite {place}: the lines have {len(quote):,} characters; at most {QUOTE_LIMIT:,} go"
                " into a case file.\nCite the lines that show it."
            )
        )
    return quote


def _file_name(project: Project, loaded: LoadedCase, file: Path, redactor: Redactor) -> str:
    """Return how the citation names the file: an attached one as the case does, others as the user did."""
    attached = attached_name(loaded, file)
    if attached is not None:
        return attached
    place, root = file.resolve(), project.root.resolve()
    name = place.relative_to(root).as_posix() if place.is_relative_to(root) else str(file)
    return printable(redactor.text(name.encode("utf-8", "replace").decode()))


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _refused(place: Place, why: str, what_to_do: str, *, slug: str = "usage") -> UsageRefused:
    return UsageRefused(
        printable(f"Couldn't cite {shown(Path(place.file))}:{place.lines}: {why}.\n{what_to_do}"), slug=slug
    )
