"""Runs the agent under test and holds its budgets; never judges."""
