"""Causes: what a raised error says about why a trial stopped. A diagnostic label, never a case's cause status.

Pure: reads an error that somebody hands over; no clock, no files, no network, and no client library.
"""

from pytest_regcase.causes.chain import exception_chain
from pytest_regcase.causes.classify import FailureCause, classify_failure
from pytest_regcase.records.words import StepRole

__all__ = ["FailureCause", "StepRole", "classify_failure", "exception_chain"]
