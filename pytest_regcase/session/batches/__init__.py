"""Runs of the recorder: a task a trial, recorded whatever happens, and what became of all of them."""
