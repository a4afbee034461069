"""A session before its first attempt: what is loaded, frozen, shared out and planned."""
