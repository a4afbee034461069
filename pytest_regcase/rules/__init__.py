"""Exact rules over counts: pure functions and small frozen records."""
