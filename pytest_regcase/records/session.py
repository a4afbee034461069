"""What the controller hands to every process of a session, so that all plan the same items."""

import re
from datetime import datetime

from pydantic import Field, field_validator

from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.words import AttemptVerdict, Profile, TransitionKind

_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class LiveRow(Record):
    """One counted live attempt of the present digests, since the last claimed fix."""

    run: int
    verdict: AttemptVerdict
    session_id: str
    fresh: bool = True
    response_digest: str | None = None


class SessionSnapshot(Record):
    """The state that items are planned from: ledger counts and revisions, frozen at the session's start."""

    session_id: str
    folder: str
    """Absolute path of the session's folder."""
    profile: Profile = "pull-request"
    live_new: int = Field(default=0, ge=0)
    """At most this many new live attempts a case."""
    agent: str | None = None
    """`--regcase-agent`: overrides every case's agent."""
    ledger_id: str
    ledger_is_new: bool = False
    agent_digests: dict[str, str] = Field(default_factory=dict)
    """Agent name -> digest of its revision."""
    live: dict[str, Many[LiveRow]] = Field(default_factory=dict)
    """Case id -> counted live attempts, by run number; of cases with a claimed fix."""
    live_of_functions: dict[str, Many[LiveRow]] = Field(default_factory=dict)
    """The same of test functions, by case id and digest of the function's revision, a space between them."""
    fix_not_at_hand: Many[str] = ()
    """Ids of cases whose last fix was claimed on a ledger that is not here: no live run could settle the claim."""
    shard: str | None = None
    """``i/n``: only the cases of that part are planned."""
    left_out: Many[str] = ()
    """Ids of cases that do not fit into the minutes that the session has."""


class SessionRow(Record):
    """One session in the ledger. A row without `finished_at` did not end by itself."""

    session_id: str
    started_at: datetime
    finished_at: datetime | None = None
    profile: Profile
    planned: Many[AttemptKey] = ()
    source: str = "pytest"
    run_id: str | None = None
    """Of the CI run that it was part of; the shards of one run share it."""
    shard: str | None = None
    """``i/n``: only the cases of that part were planned."""
    agent: str | None = None
    """`--regcase-agent`, where it was given."""
    commit: str | None = None
    """Of the project's work tree, where git knows one; ``-dirty`` behind it says that tracked files differed."""
    live_new: int | None = None
    """`--regcase-live`: so many new live attempts a case were asked for."""
    revisions: dict[str, str] | None = None
    """Agent name -> digest of its revision; None: the session was made before that was kept."""
    left_out: Many[str] = ()
    """Ids of cases that were not planned because they did not fit into `--regcase-max-minutes`."""
    hooked: Many[str] = ()
    """What hooks of the project changed for it, in words. Who decides later runs no hooks."""

    @field_validator("shard")
    @classmethod
    def _is_a_part(cls, value: str | None) -> str | None:
        found = None if value is None else _SHARD.fullmatch(value)
        if value is not None and (found is None or not 1 <= int(found[1]) <= int(found[2])):
            raise ValueError("it is no i/n with 1 <= i <= n")
        return value


class Transition(Record):
    """What somebody did to a case, as the ledger keeps it beside the case file."""

    case_id: str
    at: datetime
    kind: TransitionKind
    why: str
    who: str
    evidence: str | None = None
    """What it rests on: the numbers of a close, the digest of the seal before an amendment."""
