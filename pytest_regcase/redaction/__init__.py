"""Removes secrets and personal paths from what we are about to write, and counts them by kind.

Knows texts and `Trial`; reads no files. Must import nothing above it in the layers (importers, session, cli).
"""

from pytest_regcase.redaction.patterns import PLACEHOLDER_PREFIX
from pytest_regcase.redaction.redactor import Redactor, redact, redact_trial, secrets_in

__all__ = ["PLACEHOLDER_PREFIX", "Redactor", "redact", "redact_trial", "secrets_in"]
