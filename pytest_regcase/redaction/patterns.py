"""What secrets and personal paths look like: one pattern a shape, each with its kind.

Knows regular expressions only. A pattern has a group named ``secret``: the part that is replaced; what stands
around it stays, so that a reader still sees where it was. Must import nothing of ours.
"""

import re
from typing import Final, NamedTuple

PLACEHOLDER_PREFIX: Final = "REDACTED-"
"""Placeholders hold letters, digits and hyphens only: recorded commands are replayed in a shell, where ``<user>``
would be two redirections."""

# A word starts here. In JSON text a line break is the two characters backslash and n; no key may hide behind it.
_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
# Nothing that holds a placeholder already is taken for a secret: redacting twice changes nothing more.
_FRESH = rf"(?!\S{{0,200}}?{PLACEHOLDER_PREFIX})"


class Shape(NamedTuple):
    """One shape of secret: its kind, as it is counted, and its pattern."""

    kind: str
    pattern: re.Pattern[str]


_KEY_SHAPES = (
    r"sk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, OpenRouter, LiteLLM, Langfuse
    r"pk-lf-[A-Za-z0-9-]{16,}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|ptt|rt)-[A-Za-z0-9_-]{16,}",
    r"AIza[0-9A-Za-z_-]{30,}",  # Google
    r"ya29\.[0-9A-Za-z_-]{16,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"gsk_[A-Za-z0-9]{20,}",  # Groq
    r"csk-[A-Za-z0-9]{20,}",  # Cerebras
    r"xai-[A-Za-z0-9]{20,}",
    r"pplx-[A-Za-z0-9]{20,}",
    r"r8_[A-Za-z0-9]{20,}",  # Replicate
    r"fw_[A-Za-z0-9]{20,}",  # Fireworks
    r"lsv2_[a-z]{2}_[A-Za-z0-9_]{20,}",  # LangSmith
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}",  # Stripe
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{16,}",
    r"dapi[0-9a-f]{32}",  # Databricks
    r"dop_v1_[0-9a-f]{32,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
)

_SECRET_NAME = (
    r"(?:[A-Za-z0-9]{1,40}[_.-]){0,8}"
    r"(?:api[_-]?key|apikey|secret(?:[_-]?(?:access[_-]?)?key)?|access[_-]?key|private[_-]?key|account[_-]?key"
    r"|subscription[_-]?key|passw(?:or)?d|passphrase|token|credentials?|set-cookie|cookie)"
)
_VALUE_CHARACTERS = r"""[^\s"'`\\,;&<>(){}\[\]$]"""

SHAPES: Final = (
    Shape(
        "private_key",
        re.compile(
            r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z))",
            re.DOTALL,
        ),
    ),
    Shape(
        "url_credentials",
        re.compile(
            rf"(?i:[a-z][a-z0-9+.-]{{1,20}})://(?P<secret>{_FRESH}[^\s/@\"'\\]{{1,200}}:[^\s/@\"'\\]{{1,500}})@"
        ),
    ),
    Shape("api_key", re.compile(rf"{_START}(?P<secret>{'|'.join(_KEY_SHAPES)})")),
    Shape(
        "masked_key",
        re.compile(rf"{_START}(?P<secret>(?:sk|pk|key)-[A-Za-z0-9_-]{{0,40}}\*{{2,}}[A-Za-z0-9_*-]*)"),
    ),
    Shape(
        "bearer_token",
        re.compile(rf"(?i:bearer)\s{{1,3}}(?P<secret>{_FRESH}[A-Za-z0-9._~+/=-]{{8,}})"),
    ),
    Shape(
        "bearer_token",
        re.compile(
            r"(?i:authorization)[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3}(?i:basic|token|digest)\s{1,3}"
            rf"(?P<secret>{_FRESH}[A-Za-z0-9._~+/=-]{{8,}})"
        ),
    ),
    Shape(
        "json_web_token",
        re.compile(rf"{_START}(?P<secret>eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}})"),
    ),
    # Beside a name that says so, quoted: any value. `name = call()` and `name = other.name` are code, not secrets.
    Shape(
        "secret_value",
        re.compile(
            rf"{_START}(?i:{_SECRET_NAME})[\"'\\]{{0,3}}\s{{0,3}}[:=]\s{{0,3}}(?:\\?[\"'])"
            rf"(?P<secret>{_FRESH}{_VALUE_CHARACTERS}{{8,}})(?=\\?[\"'])"
        ),
    ),
    # Unquoted: only where letters and digits are mixed.
    Shape(
        "secret_value",
        re.compile(
            rf"{_START}(?i:{_SECRET_NAME})[\"'\\]{{0,3}}\s{{0,3}}[:=]\s{{0,3}}"
            rf"(?P<secret>{_FRESH}(?={_VALUE_CHARACTERS}{{0,200}}[0-9])(?={_VALUE_CHARACTERS}{{0,200}}[A-Za-z])"
            rf"{_VALUE_CHARACTERS}{{8,}}+)(?!\()"
        ),
    ),
    # As a shell or an .env file sets it: an upper-case name, no space.
    Shape(
        "secret_value",
        re.compile(
            rf"{_START}(?:[A-Z0-9]{{1,40}}_){{0,8}}(?:KEY|SECRET|TOKEN|PASSWORD|PASSWD)=[\"']?"
            rf"(?P<secret>{_FRESH}{_VALUE_CHARACTERS}{{8,}}+)(?!\()"
        ),
    ),
)
"""In the order in which they are applied: the wider block first, so that no half of it stays."""

EMAIL: Final = Shape(
    "email",
    re.compile(
        r"(?:(?<![A-Za-z0-9._%+-])|(?<=\\[nrt]))"
        rf"(?P<secret>(?!git@)(?![^\s@]{{0,64}}?{PLACEHOLDER_PREFIX})[A-Za-z0-9][A-Za-z0-9._%+-]{{0,63}}@"
        r"(?!(?:[A-Za-z0-9-]+\.)*(?:example|test|invalid|localhost)(?:\.(?:com|net|org))?\b)"
        r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})\b"
    ),
)
"""Addresses in reserved domains (RFC 2606) belong to nobody and stay; so does ``git@host`` of a clone address."""

# A letter of any script, also as JSON escapes it; not the escape of a control character or of punctuation.
_ESCAPED = r"\\u(?!00[0-9abAB]|20)[0-9a-fA-F]{4}"
_USER = rf"(?:\w|{_ESCAPED})(?:(?:[\w.@+-]|{_ESCAPED}){{0,62}}(?:[\w$-]|{_ESCAPED}))?"

HOME_PATH: Final = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:(?P<separator>\\{1,2}|/)Users(?P=separator))"
    # On Windows a name often holds spaces; without a further folder nobody can tell where it ends.
    rf"(?P<secret>{_FRESH}{_USER}(?(separator)(?:(?: {_USER}){{1,3}}(?=(?P=separator)\w))?))"
)
"""A home folder on Linux, macOS or Windows; the group is the user's name."""

SECRET_KEY: Final = re.compile(rf"(?i:{_SECRET_NAME})")
"""Matches the whole of a mapping's key whose value is a secret."""

GENERIC_USERS: Final = frozenset(
    {
        "admin",
        "agent",
        "app",
        "build",
        "builder",
        "circleci",
        "coder",
        "container",
        "default",
        "dev",
        "docker",
        "guest",
        "harness",
        "jovyan",
        "model",
        "node",
        "nobody",
        "nonroot",
        "openhands",
        "project",
        "public",
        "python",
        "root",
        "runner",
        "sandbox",
        "shared",
        "swe",
        "test",
        "tester",
        "ubuntu",
        "user",
        "vagrant",
        "vscode",
        "work",
        "workspace",
    }
)
"""Account names that name no person: gone from home paths like any other, but left alone as words in a text."""
