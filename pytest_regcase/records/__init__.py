"""Frozen pydantic records that pass between the stages; pure."""
