"""Decisions over candidates, kept whatever they are, and the story of a revision."""
