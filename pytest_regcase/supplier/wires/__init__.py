"""One protocol each."""
