"""The judge: what was observed against what was expected; pure."""
