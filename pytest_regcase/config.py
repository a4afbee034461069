"""`[tool.regcase]` in pyproject.toml: its shape, and the project that it describes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.case import Rate
from pytest_regcase.records.trial import ToolCall

PositiveSeconds = Annotated[float, Field(gt=0)]


class ClosingReply(Record):
    """What ends a healthy run: a text, or tool calls (some harnesses want a submit call)."""

    text: str | None = None
    tool_calls: Many[ToolCall] = ()


class AgentConfig(Record):
    """`[tool.regcase.agents.NAME]`: how to run an agent under test and where it puts what it did."""

    command: Many[str] | None = None
    python: str | None = None
    """``module:function``, called in a child process."""
    env: dict[str, str] = Field(default_factory=dict)
    live_env: Many[str] = ()
    """Names of the runner's variables that a live attempt may see."""
    output: str | None = None
    """File or folder that an importer reads; placeholders allowed."""
    importer: str | None = None
    submission: str | None = None
    """``path`` or ``path#/json/pointer``; so are answer, status, transcript and log."""
    answer: str | None = None
    status: str | None = None
    transcript: str | None = None
    log: str | None = None
    submits_by: Literal["file", "commit", "score", "answer"] | None = None
    deadline_seconds: PositiveSeconds = 90
    """After the first faulted request."""
    cap_seconds: PositiveSeconds = 600
    """The whole attempt."""
    live_cap_seconds: PositiveSeconds | None = None
    revision_paths: Many[str] = ()
    model: str | None = None
    closing_reply: ClosingReply | None = None
    time_scale: Annotated[float, Field(ge=1)] = 1
    wrapper: Many[str] = ()
    cleanup: Many[str] = ()
    cost_per_attempt: float | None = None


class LimitsConfig(Record):
    """Floors that no case may loosen."""

    max_failure_rate: Rate | None = None
    risk: Rate | None = None
    max_retries: int | None = None
    stop_within_seconds: PositiveSeconds | None = None


class SupplierConfig(Record):
    """How the supplier is reached."""

    reach: str = "loopback"


class UpstreamConfig(Record):
    """The real supplier, for live attempts."""

    base_url: str
    wire: str = "openai-chat"
    api_key_env: str | None = None


class RegcaseConfig(Record):
    """The whole `[tool.regcase]` table; the defaults are those of the design."""

    cases: Many[str] = ("cases",)
    fixtures: Many[str] = ("fixtures",)
    ledger: str = ".regcase/ledger.sqlite3"
    max_failure_rate: Rate = "0.10"
    risk: Rate = "0.05"
    plan: str = "zero"
    rule: Literal["bounded", "fixed"] = "bounded"
    comparison: Literal["fisher", "boschloo"] = "fisher"
    min_sessions: int = 1
    attempts_spend: bool = False
    flake_budget: Rate = "0.01"
    quarantine: Literal["manual", "auto"] = "manual"
    max_quarantined: int = 3
    confirm: Literal[2] = 2
    claim_days: int = 14
    cost_per_attempt: float | None = None
    keep_attempts_days: int = 30
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    supplier: SupplierConfig = Field(default_factory=SupplierConfig)
    upstream: UpstreamConfig | None = None
    agents: dict[str, AgentConfig] = Field(default_factory=dict)


@dataclass(frozen=True)
class Project:
    """A folder with a pyproject.toml, and what its `[tool.regcase]` says."""

    root: Path
    config: RegcaseConfig
    pyproject: Path | None = None

    @property
    def case_folders(self) -> tuple[Path, ...]:
        """The configured case folders, absolute."""
        return tuple(self.root / each for each in self.config.cases)

    @property
    def fixture_folders(self) -> tuple[Path, ...]:
        """The configured simulation folders, absolute."""
        return tuple(self.root / each for each in self.config.fixtures)
