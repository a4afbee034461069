"""Revisions that the ledger knows: which one is meant, what was decided on it, and which one is active.

Decides nothing about attempts. What may become active is decided here, over the ledger alone: the checkout may be
another branch's by then. Never prints.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pytest_regcase.config import Project
from pytest_regcase.errors import ClaimRefused, UnknownName, UsageRefused
from pytest_regcase.records.decision import Reason
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.version import Decided, Held, Version
from pytest_regcase.redaction import Redactor
from pytest_regcase.rules.lifecycle import in_utc
from pytest_regcase.session.project.who import who_acts
from pytest_regcase.session.revisions.git_revision import DIRTY, commit_named
from pytest_regcase.session.revisions.log_revision import digest_at
from pytest_regcase.session.revisions.revision import configured, revision_over

if TYPE_CHECKING:  # who only names a revision must not load SQLAlchemy
    from pytest_regcase.ledger.store import Ledger
    from pytest_regcase.ledger.versions import Grounds

_PREFIX: Final = "sha256:"
_HEX: Final = re.compile(r"[0-9a-f]{7,64}")
_DIGITS_SHOWN: Final = 12
_LISTED: Final = 8


@dataclass(frozen=True)
class KnownRevision:
    """A revision of which the ledger has a session, a decision, or that was active."""

    digest: str
    sessions: tuple[SessionRow, ...] = ()
    """Without planned keys, oldest first."""
    notices: tuple[str, ...] = ()
    """What to mind about how it was named."""

    @property
    def newest_first(self) -> list[SessionRow]:
        """The sessions in the order that a gate looks at them."""
        return list(reversed(self.sessions))

    @property
    def agents(self) -> dict[str, str]:
        """Agent name -> digest; empty where no session of it is here."""
        return configured(self.sessions[-1].revisions or {}) if self.sessions else {}

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits that sessions recorded, as they recorded them, each once, oldest first."""
        return tuple(dict.fromkeys(each.commit for each in self.sessions if each.commit is not None))

    @property
    def short(self) -> str:
        """As a person tells it from another one, and as it may be given again."""
        return shown_digest(self.digest)


@dataclass(frozen=True)
class Promoted:
    """What is active now, and what was before."""

    version: Version
    before: Version | None
    decided: Decided | None
    """The decision that allowed it; None where nothing changed."""

    @property
    def changed(self) -> bool:
        """It was not active already."""
        return self.version != self.before


def shown_digest(digest: str) -> str:
    """Return a digest with as many digits as a person needs."""
    return digest[: len(_PREFIX) + _DIGITS_SHOWN]


def shown_commit(commit: str) -> str:
    """Return a recorded commit for a person."""
    clean = commit.removesuffix(DIRTY)
    return clean[:10] + (" with uncommitted changes" if clean != commit else "")


def reason_text(reason: Reason) -> str:
    """Return a reason with its case."""
    return reason.text if reason.case_id is None else f"{reason.case_id}: {reason.text}"


def find_revision(project: Project, ledger: "Ledger", name: str) -> KnownRevision:
    """Return the one revision that `name` means.

    That is a digest, or at least 7 digits of its beginning, with or without ``sha256:``; or whatever git takes for
    a commit that a session recorded, or at which the agents are those of a session. Where git does not know it,
    the beginning of a recorded commit is enough.

    Raises:
        UnknownName: no revision here is meant; the text lists those that are.
        UsageRefused: it may be several ones; the text lists them.
        LedgerError: the ledger cannot be read.
    """
    known = _known(ledger)
    text = name.strip().lower()
    digits = text.removeprefix(_PREFIX)
    is_beginning = _HEX.fullmatch(digits) is not None
    found = {each.digest: each for each in known if is_beginning and each.digest.startswith(_PREFIX + digits)}
    commit: str | None = None
    if not text.startswith(_PREFIX):
        in_git = commit_named(project.root, name.strip())
        commit = None if in_git is None else in_git.commit
        wanted = commit or (digits if is_beginning else None)
        by_commit = [] if wanted is None else [_by_commit(each, wanted) for each in known]
        found = {each.digest: each for each in by_commit if each is not None} | found
    if not found and commit is not None:
        found = {each.digest: each for each in _of_equal_agents(project, commit, known)}
    if not found:
        raise UnknownName(_unknown(name, commit, known))
    if len(found) > 1:
        raise UsageRefused(
            f"Couldn't tell which revision {name!r} is: it may be any of these.\n{_listed(list(found.values()))}\n"
            "Give the digest, or more of it."
        )
    return next(iter(found.values()))


def promote(
    project: Project,
    ledger: "Ledger",
    revision: KnownRevision,
    *,
    by: str | None = None,
    why: str | None = None,
    at: datetime | None = None,
) -> Promoted:
    """Make a revision active: append who, when, why and on which decision. What is active already stays as it is.

    Raises:
        ClaimRefused: its last decision as a candidate did not pass, or is older than what the ledger holds.
        UsageRefused: nobody can be named as who does it, or what is active or that decision is dated later than
            now.
        LedgerError: the ledger cannot be written.
    """
    from pytest_regcase.ledger.versions import make_active

    by = by or who_acts(project.root, "who promotes the revision")
    at = in_utc(at or datetime.now(UTC))
    why = None if why is None else Redactor().text(why)
    seen: list[Grounds] = []

    def judge(grounds: "Grounds") -> Version:
        seen.append(grounds)
        if grounds.active is not None and grounds.active.active == revision.digest:
            return grounds.active
        decided = _allowing(revision, grounds, at)
        if grounds.active is not None and at <= grounds.active.since:
            raise UsageRefused(
                f"Couldn't promote {revision.short}: {shown_digest(grounds.active.active)} is active since"
                f" {moment_text(grounds.active.since)}, and here it is {moment_text(at)}.\n"
                "Check this machine's clock and the other's, or wait."
            )
        return Version(active=revision.digest, since=at, decision=decided.digest, who=by, why=why)

    version = make_active(ledger, revision.digest, revision.agents, judge)
    # Asked twice, it was stored at the first time.
    before, newest = seen[0].active, seen[0].newest
    return Promoted(version, before, newest if version != before else None)


def _allowing(revision: KnownRevision, grounds: "Grounds", at: datetime) -> Decided:
    newest = grounds.newest
    again = f"regcase gate --candidate {revision.short}"
    if newest is None:
        raise ClaimRefused(
            f"Couldn't promote {revision.short}: nothing was decided on it as a candidate. What pytest decides at"
            f" the end of a session may be over a part of the cases.\nDecide first: {again}"
        )
    if newest.decision.decision != "pass":
        red = [each for each in newest.decision.reasons if each.red]
        why = f": {reason_text(red[0])}" if red else ""
        raise ClaimRefused(
            f"Couldn't promote {revision.short}: its last decision, of {moment_text(newest.at)}, is"
            f" {newest.decision.decision}{why}.\nAn earlier one that passed does not count beside it. All of them:"
            f" regcase history --version {revision.short}"
        )
    if newest.at > at:
        raise UsageRefused(
            f"Couldn't promote {revision.short}: its last decision is dated {moment_text(newest.at)}, and here it"
            f" is {moment_text(at)}; a later one may be hidden behind it.\n"
            "Check this machine's clock and the other's, or wait."
        )
    held = None if newest.rests_on is None else newest.rests_on.held
    if held != grounds.held:
        raise ClaimRefused(
            f"Couldn't promote {revision.short}: it passed on {moment_text(newest.at)}, and since then the ledger"
            f" {_since(held, grounds.held)}, which that decision has not seen.\nDecide again: {again}"
        )
    return newest


def _since(before: Held | None, now: Held) -> str:
    if before is None:
        return "may hold other attempts of it"
    sessions, attempts = now.sessions - before.sessions, now.attempts - before.attempts
    invalidated = now.invalidated - before.invalidated
    parts = [
        f"{count} more {what}" + ("" if count == 1 else "s")
        for count, what in ((sessions, "session"), (attempts, "attempt"))
        if count > 0
    ]
    parts += [f"{invalidated} invalidated"] if invalidated > 0 else []
    return f"has {', '.join(parts)} of it" if parts else "lacks attempts of it"


def _known(ledger: "Ledger") -> list[KnownRevision]:
    """Every revision of a session, a decision or a version; the one with the newest session last."""
    from pytest_regcase.ledger.sessions import session_heads
    from pytest_regcase.ledger.versions import revisions_decided, versions

    by_digest: dict[str, list[SessionRow]] = {}
    for digest in (*revisions_decided(ledger), *(each.active for each in versions(ledger))):
        by_digest[digest] = []
    for row in reversed(session_heads(ledger)):
        if row.revisions:
            digest = revision_over(row.revisions)
            by_digest[digest] = [*by_digest.pop(digest, []), row]
    return [KnownRevision(digest, tuple(rows)) for digest, rows in by_digest.items()]


def _by_commit(revision: KnownRevision, commit: str) -> KnownRevision | None:
    """The revision where it was run on that commit; that it was never run as the commit holds it, is said."""
    recorded = [each for each in revision.commits if each.startswith(commit)]
    if not recorded:
        return None
    if any(not each.endswith(DIRTY) for each in recorded):
        return revision
    notice = (
        f"every session of {revision.short} that was run on commit {recorded[0][:10]} had uncommitted changes:"
        " what is decided on need not be what the commit holds"
    )
    return KnownRevision(revision.digest, revision.sessions, (notice,))


def _of_equal_agents(project: Project, commit: str, known: Sequence[KnownRevision]) -> Iterator[KnownRevision]:
    """The revisions whose agents are what they are at a commit that no session was run on: one of docs, say."""
    names = {name for each in known for name in each.agents}
    there = {name: digest_at(project, name, commit)[0] for name in sorted(names)}
    for each in known:
        if each.agents and all(there[name] == digest for name, digest in each.agents.items()):
            notice = f"no session was run on commit {commit[:10]}; the agents there are those of {each.short}"
            yield replace(each, notices=(*each.notices, notice))


def _unknown(name: str, commit: str | None, known: Sequence[KnownRevision]) -> str:
    why = "no session of this ledger ran it"
    if commit is not None:
        why = f"no session of this ledger was run on commit {commit[:10]}, or with the agents as they are there"
    if not known:
        return (
            f"Couldn't find revision {name!r}: the ledger has no session of any revision.\n"
            "The first is made by: pytest --regcase"
        )
    return (
        f"Couldn't find revision {name!r}: {why}.\nRun pytest --regcase on it first, or give one of these, a"
        f" commit of one, or at least 7 digits:\n{_listed(known)}"
    )


def _listed(known: Sequence[KnownRevision]) -> str:
    newest = list(reversed(known))
    more = [f"  and {len(newest) - _LISTED} older ones"] if len(newest) > _LISTED else []
    return "\n".join([*(f"  {'  '.join(_facts(each))}" for each in newest[:_LISTED]), *more])


def _facts(revision: KnownRevision) -> Iterator[str]:
    yield revision.short
    if revision.commits:
        yield f"commit {shown_commit(revision.commits[-1])}"
    yield f"last run {moment_text(revision.sessions[-1].started_at)}" if revision.sessions else "no session"


def moment_text(at: datetime) -> str:
    """Return a time for a person."""
    return f"{in_utc(at):%Y-%m-%d %H:%M} UTC"
