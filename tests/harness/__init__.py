"""Public agents, run by their own command lines."""
