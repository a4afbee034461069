"""What lower-level logs show about an observation: which lines may bear on a hypothesis, and what may be cited.

Reads logs and case files; writes nothing and judges nothing. Knows neither trials nor importers, and does not
redact: who shows or writes a line does that.
"""
