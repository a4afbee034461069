"""Trying a supplier or an agent by hand, before any case depends on it."""
