"""Sweeps of trials that others made: which failed, which failures are known, what counts for a case."""
