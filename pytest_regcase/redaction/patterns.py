"""What secrets look like by themselves, and in headers, addresses and commands: one pattern a shape, with its
kind.

Knows regular expressions only. A pattern has a group named ``secret``: the part that is replaced; what stands
around it stays, so that a reader still sees where it was. Values told by the name beside them are in
`beside_names`.
"""

import re
from typing import Final, NamedTuple

from pytest_regcase.redaction.placeholders import FRESH
from pytest_regcase.redaction.provider_keys import KEY_SHAPES

START: Final = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
"""A word starts here. In JSON text a line break is the two characters backslash and n; no key may hide behind
it."""

_HEADER = r"[\"'`\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'`\\]{0,3}"
_TOKEN = r"[A-Za-z0-9._~+/=-]"
_WORD = r"[^\s\"'`\\;&|<>$(){}]"
# The rest of a command line; in JSON text a continued line is a backslash, a backslash and n.
_ARGUMENTS = r"[^\n|;]{0,200}?[\s\"'n]"
_COOKIE = r"[A-Za-z0-9_.%!*+^~-]{1,100}=[^\s;,\"'\\]{0,4096}"
_ATTRIBUTE = r"(?i:path|expires|max-age|domain|samesite|priority)="


class Shape(NamedTuple):
    """One shape of secret: its kind, as it is counted, and its pattern."""

    kind: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    """One of these is in every text that it matches, in lower case: looking for them is far quicker."""


def _shape(kind: str, pattern: str, *needs: str) -> Shape:
    return Shape(kind, re.compile(pattern), needs)


SHAPES: Final = (
    # A block that was cut off goes to the end of the string that it stands in.
    _shape(
        "private_key",
        r"(?P<secret>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^\"'`<>]*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|(?=[\"'`<>])|\Z))",
        "private key",
    ),
    # The user's name may be empty; a password may hold an @.
    _shape(
        "url_credentials",
        rf"(?i:[a-z][a-z0-9+.-]{{1,20}})://(?P<secret>{FRESH}[^\s/?#:\"'`\\<>]{{0,200}}:[^\s/?#\"'`\\<>]{{1,500}})@",
        "://",
    ),
    _shape("api_key", rf"{START}(?:bot)?(?P<secret>{'|'.join(KEY_SHAPES)})", ""),
    # A token in the place of a user: a clone address, the address of an error tracker.
    _shape(
        "url_credentials",
        rf"(?i:https?)://(?P<secret>{FRESH}(?=[A-Za-z_-]{{0,200}}\d)[A-Za-z0-9_-]{{20,200}})@",
        "://",
    ),
    # Who knows such an address may post there.
    _shape(
        "api_key",
        rf"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>{FRESH}[A-Za-z0-9_/-]{{16,200}})",
        "hooks.slack.com",
    ),
    _shape(
        "api_key",
        rf"discord(?:app)?\.com/api/webhooks/(?P<secret>{FRESH}\d{{10,20}}/[A-Za-z0-9_-]{{30,100}})",
        "discord",
    ),
    _shape("masked_key", rf"{START}(?P<secret>(?:sk|pk|key)-[A-Za-z0-9_-]{{0,40}}\*{{2,}}[A-Za-z0-9_*-]*)", "**"),
    _shape(
        "bearer_token",
        rf"(?i:authorization){_HEADER}(?i:basic|bearer|token|digest|apikey|api-key|negotiate|ntlm|splunk)\s{{1,3}}"
        rf"(?P<secret>{FRESH}{_TOKEN}{{8,}})",
        "authorization",
    ),
    # Without a scheme, or in prose: only what mixes in a digit is a token ("bearer authentication" is none).
    _shape(
        "bearer_token",
        rf"(?i:authorization){_HEADER}(?P<secret>{FRESH}(?={_TOKEN}{{0,200}}\d){_TOKEN}{{12,}})",
        "authorization",
    ),
    _shape(
        "bearer_token", rf"(?i:bearer)\s{{1,3}}(?P<secret>{FRESH}(?={_TOKEN}{{0,200}}\d){_TOKEN}{{8,}})", "bearer"
    ),
    _shape(
        "json_web_token",
        rf"{START}(?P<secret>eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}})",
        "eyj",
    ),
    _shape(
        "cookie",
        rf"(?i:(?<![A-Za-z])(?:set-)?cookies?){_HEADER}(?P<secret>{FRESH}(?!{_ATTRIBUTE}){_COOKIE}"
        rf"(?:;\s?(?!{_ATTRIBUTE}){_COOKIE}){{0,60}})",
        "cookie",
    ),
    # Commands that take a password or a pair as an argument of its own.
    _shape(
        "secret_value",
        rf"(?i:mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump)\s(?:{_ARGUMENTS})?-p[\"'\\]{{0,2}}"
        rf"(?P<secret>{FRESH}(?!-){_WORD}{{2,200}})",
        "mysql",
        "mariadb",
    ),
    _shape(
        "secret_value",
        rf"(?:{START}(?:curl|wget|https?|xh)\s(?:{_ARGUMENTS})?(?:-u|-U|--user|--proxy-user)[ =]?)[\"'\\]{{0,2}}"
        rf"(?P<secret>{FRESH}[^\s:\"'`\\$]{{1,100}}:[^\s\"'`\\$]{{1,200}})",
        "curl",
        "wget",
        "http",
        "xh",
    ),
    _shape(
        "secret_value",
        rf"{START}(?:sshpass\s{{1,3}}-p|redis-cli\s(?:{_ARGUMENTS})?-a"
        rf"|(?:docker|podman|helm|oras)\s{{1,3}}(?:registry\s)?login\s(?:{_ARGUMENTS})?-p"
        rf"|ldap(?:search|modify|add|delete)\s(?:{_ARGUMENTS})?-w)\s{{0,3}}[\"'\\]{{0,2}}"
        rf"(?P<secret>{FRESH}(?!-){_WORD}{{3,200}})",
        "sshpass",
        "redis-cli",
        "login",
        "ldap",
    ),
    _shape(
        "secret_value",
        rf"-pass(?:in|out)?\s{{1,3}}[\"'\\]{{0,2}}pass:(?P<secret>{FRESH}{_WORD}{{3,200}})",
        "pass:",
    ),
    # ~/.netrc
    _shape(
        "secret_value",
        rf"{START}login\s{{1,3}}\S{{1,200}}(?:\s{{1,3}}|\\n\s{{0,3}})password\s{{1,3}}(?P<secret>{FRESH}{_WORD}{{3,200}})",
        "login",
    ),
)
"""In the order in which they are applied: the wider block first, so that no half of it stays."""

BASIC: Final = re.compile(rf"(?i:(?<![A-Za-z])basic)\s{{1,3}}[\"']?(?P<secret>{FRESH}[A-Za-z0-9+/]{{8,}}={{0,2}})")
"""A word after ``Basic``: a secret where it decodes to ``name:password``."""
