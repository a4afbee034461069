"""What ledgers hold of the past, read for a decision; and rows and folders moved in, out or away."""
