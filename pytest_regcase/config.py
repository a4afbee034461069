"""`[tool.regcase]` in pyproject.toml: its shape, and the project that it describes.

Reads nothing but pyproject.toml and REGCASE_LEDGER; knows no case file, and starts nothing that it names.
"""

import difflib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.case import Amendment, Rate
from pytest_regcase.records.trial import ToolCall
from pytest_regcase.toml_lines import Key, TomlFile, dotted, read_toml, shown, validate

MOST_CONFIRM_RUNS = 10


def _is_a_number_of_runs(value: object) -> object:
    """Say what is allowed, also to somebody who looks for another policy here: the runner has this one only."""
    if type(value) is not int or not 1 <= value <= MOST_CONFIRM_RUNS:
        raise ValueError(
            f"{json.dumps(value, default=str)} cannot be; allowed: 1 to {MOST_CONFIRM_RUNS}, the number of runs"
            " that follow a failed check (the gate policies first, fixed:n,c and any-pass cannot be run yet)"
        )
    return value


REACHES = '"loopback", "docker", or one IPv4 address of this machine'
"""What `reach` may be, for messages."""


def why_no_reach(text: str) -> str | None:
    """Say what is wrong with a `reach` on any machine; None: nothing is. Whose address it is, this cannot say."""
    if text in ("loopback", "docker"):
        return None
    try:
        address = IPv4Address(text)
    except ValueError:
        return "no IPv4 address"
    if address.is_unspecified:
        return "every address of this machine, also those in networks that you do not know of"
    return "no address of one machine" if address.is_multicast else None


def _is_a_reach(value: str) -> str:
    why_not = why_no_reach(value)
    if why_not is not None:
        raise ValueError(f"{json.dumps(value)} is {why_not}; allowed: {REACHES}")
    return value


def _is_a_base_url(value: str) -> str:
    """Refuse what would not be sent; a password would also be written down. So the text is not repeated."""
    try:
        url = urlsplit(value)
        ok = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        raise ValueError("it is no http or https URL") from None
    if not ok:
        raise ValueError("it is no http or https URL")
    if "@" in url.netloc or url.query or url.fragment:
        raise ValueError(
            "it holds a user name, a query or a fragment, which are not sent; allowed: scheme, host, port and"
            " path, and the name of the key's variable in api_key_env"
        )
    return value


PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ConfirmRuns = Annotated[int, BeforeValidator(_is_a_number_of_runs), Field(ge=1, le=MOST_CONFIRM_RUNS)]


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
    """After the first faulted request, by the agent's clock."""
    cap_seconds: PositiveSeconds = 600
    """The whole attempt, by the agent's clock."""
    live_cap_seconds: PositiveSeconds | None = None
    revision_paths: Many[str] = ()
    model: str | None = None
    closing_reply: ClosingReply | None = None
    time_scale: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1
    """How many times as fast the agent's clock runs from the fault on; never in live attempts."""
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

    reach: Annotated[str, AfterValidator(_is_a_reach)] = "loopback"
    """`loopback`; `docker`: also the address of Docker's bridge; else one more address of this machine."""


class UpstreamConfig(Record):
    """The real supplier, for live attempts."""

    base_url: Annotated[str, AfterValidator(_is_a_base_url)]
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
    """`fixed`: the comparison with the baseline is compulsory beside the bound."""
    comparison: Literal["fisher", "boschloo", "bayes"] = "fisher"
    independence: Literal["fresh", "distinct", "off"] = "fresh"
    min_sessions: Annotated[int, Field(ge=1)] = 1
    """Sessions that the clean runs of a claim must come from."""
    attempts_spend: bool = False
    """All fixes of a case together spend the risk, instead of each the whole of it."""
    flake_budget: Rate = "0.01"
    quarantine: Literal["manual", "auto"] = "manual"
    max_quarantined: Annotated[int, Field(ge=0)] = 3
    confirm: ConfirmRuns = 2
    """Runs after a failed check."""
    claim_days: Annotated[int, Field(ge=0)] = 14
    cost_per_attempt: float | None = None
    keep_attempts_days: int = 30
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    supplier: SupplierConfig = Field(default_factory=SupplierConfig)
    upstream: UpstreamConfig | None = None
    amendments: Many[Amendment] = ()
    """Why a rule was loosened, for `regcase check --against`; added to, never edited."""
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

    def ledger_url(self) -> str:
        """Return the ledger's SQLAlchemy URL; REGCASE_LEDGER wins over the configuration.

        A plain path, relative to the project's root, means SQLite.

        Raises:
            UsageRefused: the path holds a question mark, which would end it inside a URL.
        """
        place = os.environ.get("REGCASE_LEDGER") or self.config.ledger
        if "://" in place:
            return place
        path = str((self.root / place).absolute())
        if "?" in path:
            raise UsageRefused(
                f"Couldn't make a database URL of the ledger's path {path}: it holds a question mark.\n"
                "Move the ledger, or set REGCASE_LEDGER to a whole SQLAlchemy URL."
            )
        return f"sqlite:///{path}"


def load_project(start: Path, *, must_exist: bool = False) -> Project:
    """Return the project around `start`: the nearest pyproject.toml, upwards, with a `[tool.regcase]`.

    Without one the defaults hold and `start` is the root, unless `must_exist`.

    Raises:
        FileError: a file on the way does not hold what is allowed.
        UsageRefused: nothing is configured, and it `must_exist`.
    """
    start = start.absolute()
    if start.is_file():
        start = start.parent
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if not path.is_file():
            continue
        toml = read_toml(path)
        tools = toml.data.get("tool")
        if isinstance(tools, dict) and "regcase" in tools:
            return Project(root=folder, config=read_config(toml), pyproject=path)
    if must_exist:
        raise UsageRefused(
            f"Couldn't find a project: no pyproject.toml in {shown(start)} or above it has a [tool.regcase].\n"
            "Run `regcase init` in the project's folder."
        )
    return Project(root=start, config=RegcaseConfig())


def read_config(toml: TomlFile) -> RegcaseConfig:
    """Return the `[tool.regcase]` of `toml`, checked also for what one key says about another.

    Raises:
        FileError: one line a problem, with file and line.
    """
    config = validate(RegcaseConfig, toml, ("tool", "regcase"))
    problems = [
        toml.problem(("tool", "regcase", "agents", name, *key), says)
        for name, agent in config.agents.items()
        for key, says in agent_problems(name, agent)
    ]
    rates = {
        ("max_failure_rate",): config.max_failure_rate,
        ("risk",): config.risk,
        ("flake_budget",): config.flake_budget,
        ("limits", "max_failure_rate"): config.limits.max_failure_rate,
        ("limits", "risk"): config.limits.risk,
    }
    problems += [
        toml.problem(
            (place := ("tool", "regcase", *name)),
            f'{dotted(place)} = "{value}"; allowed: more than 0 and less than 1',
        )
        for name, value in rates.items()
        if value is not None and not 0 < Decimal(value) < 1
    ]
    if not problems:
        problems += _rule_problems(toml, config)
    if not config.cases:
        problems.append(
            toml.problem(("tool", "regcase", "cases"), "tool.regcase.cases is empty; allowed: at least one folder")
        )
    if problems:
        raise FileError(problems)
    return config


def _rule_problems(toml: TomlFile, config: RegcaseConfig) -> Iterator[str]:
    """What the rules themselves refuse; asked only where every rate is one."""
    from pytest_regcase.rules.plans import plan_for

    try:
        plan_for(config.plan, config.max_failure_rate, config.risk)
    except UsageRefused as refused:
        yield toml.problem(("tool", "regcase", "plan"), " ".join(refused.text.splitlines()))


PLACEHOLDERS = (
    "task_file",
    "task",
    "task_id",
    "attempt",
    "seed",
    "work_dir",
    "out_dir",
    "project_dir",
    "openai_base_url",
    "anthropic_base_url",
    "openai_base_url_container",
    "anthropic_base_url_container",
    "container_host_args",
    "attempt_label",
    "api_key",
    "model",
)
"""What may stand in braces in an agent's strings."""

# Shell's ${name} and templates' {{name}} are the user's own text.
_PLACEHOLDER = re.compile(r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
_FILLED = ("command", "env", "output", "submission", "answer", "status", "transcript", "log", "wrapper", "cleanup")


def agent_problems(name: str, agent: AgentConfig) -> Iterator[tuple[Key, str]]:
    """Yield what is wrong with an agent's entry as a whole, each with the key in it."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        yield (), f'the agent name "{name}"; allowed: lower-case letters, digits and hyphens'
    if (agent.command is None) == (agent.python is None):
        found = "neither command nor python is" if agent.command is None else "both command and python are"
        yield (), f"{found} there for the agent {name}; allowed: exactly one of them"
    if agent.command is not None and (not agent.command or not agent.command[0]):
        yield ("command",), "command is empty; allowed: a program and its arguments"
    if agent.python is not None and not re.fullmatch(r"[\w.]+:[\w.]+", agent.python):
        yield ("python",), f'python = "{agent.python}"; allowed: "module:function"'
    if agent.cap_seconds < agent.deadline_seconds:
        yield (
            ("cap_seconds" if "cap_seconds" in agent.model_fields_set else "deadline_seconds",),
            f"cap_seconds = {agent.cap_seconds:g}, for the whole attempt, is below deadline_seconds ="
            f" {agent.deadline_seconds:g}, which begins with the first faulted request; allowed: at least as much",
        )
    closing = agent.closing_reply
    if closing is not None and closing.text is None and not closing.tool_calls:
        yield ("closing_reply",), "closing_reply is empty; allowed: text, tool_calls, or both"
    for key, text in _filled_strings(agent):
        for match in _PLACEHOLDER.finditer(text):
            word = match["name"]
            if word is not None and word not in PLACEHOLDERS:
                near = difflib.get_close_matches(word, PLACEHOLDERS, 1)
                allowed = f"did you mean {{{near[0]}}}?" if near else f"allowed: {', '.join(PLACEHOLDERS)}"
                yield key, f"unknown placeholder {{{word}}}; {allowed}"


def _filled_strings(agent: AgentConfig) -> Iterator[tuple[Key, str]]:
    for field in _FILLED:
        value: Any = getattr(agent, field)
        if isinstance(value, str):
            yield (field,), value
        elif isinstance(value, dict):
            yield from (((field, name), text) for name, text in value.items())
        elif value is not None:
            yield from (((field, index), text) for index, text in enumerate(value))
