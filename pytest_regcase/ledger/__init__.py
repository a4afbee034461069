"""The append-only record of attempts, sessions and decisions."""
