"""Removes secrets and personal paths from what we are about to write, and counts them by kind.

Knows texts and `Trial`; reads no files. Must import nothing above it in the layers (importers, session, cli).

The patterns are ours. detect-secrets 1.5.0 was measured on the list that our tests plant: it finds and delimits
9 of 41 (of a GitHub token it returns ``ghp``, of a private key its first line; there is nothing for Anthropic,
Google, Groq, Hugging Face, cookies, headers and query parameters), two of its patterns are quadratic (8 s on 40
KB of slashes), and importing it costs 0.25 s and `requests`. It is made to find lines in a repository, not to
cut secrets out of a text.
"""

from pytest_regcase.redaction.keeping import KINDS, Keep
from pytest_regcase.redaction.literal import Literal
from pytest_regcase.redaction.placeholders import PLACEHOLDER_PREFIX, numbers_taken
from pytest_regcase.redaction.redactor import Redactor, redact, secrets_in
from pytest_regcase.redaction.trials import redact_record, redact_trial

__all__ = [
    "KINDS",
    "PLACEHOLDER_PREFIX",
    "Keep",
    "Literal",
    "Redactor",
    "numbers_taken",
    "redact",
    "redact_record",
    "redact_trial",
    "secrets_in",
]
