"""The parts of a new case: what is planned, copied, given by a person and written."""
