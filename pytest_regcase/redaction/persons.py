"""What names a person in a log: home folders, e-mail addresses, account names.

Knows regular expressions only.
"""

import re
from typing import Final

from pytest_regcase.redaction.placeholders import FRESH, PLACEHOLDER_PREFIX

EMAIL: Final = re.compile(
    r"(?:(?<![A-Za-z0-9._%+-])|(?<=\\[nrt]))"
    rf"(?P<secret>(?!git@)(?![^\s@]{{0,64}}?{PLACEHOLDER_PREFIX})[A-Za-z0-9][A-Za-z0-9._%+-]{{0,63}}@"
    r"(?!(?:[A-Za-z0-9-]+\.)*(?:example|test|invalid|localhost)(?:\.(?:com|net|org))?\b)"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})\b"
)
"""Addresses in reserved domains (RFC 2606) belong to nobody and stay; so does ``git@host`` of a clone address."""

# A letter of any script, also as JSON escapes it; not the escape of a control character or of punctuation.
_ESCAPED = r"\\u(?!00[0-9abAB]|20)[0-9a-fA-F]{4}"
_USER = rf"(?:\w|{_ESCAPED})(?:(?:[\w.@+-]|{_ESCAPED}){{0,62}}(?:[\w$-]|{_ESCAPED}))?"

HOME_PATH: Final = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:(?P<separator>\\{1,2}|/)Users(?P=separator))"
    # On Windows a name often holds spaces; without a further folder nobody can tell where it ends.
    rf"(?P<secret>{FRESH}{_USER}(?(separator)(?:(?: {_USER}){{1,3}}(?=(?P=separator)\w))?))"
)
"""A home folder on Linux, macOS or Windows; the group is the user's name."""

LOGIN: Final = re.compile(
    rf"(?<![A-Za-z0-9_])(?:USER|LOGNAME|USERNAME|SUDO_USER)=[\"']?(?P<secret>{FRESH}[A-Za-z_][\w.-]{{2,62}})"
)
"""A login as an environment shows it."""

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
