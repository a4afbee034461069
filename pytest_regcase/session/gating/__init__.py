"""The gate over sessions that have ended, and where cases stand: nothing is run."""
