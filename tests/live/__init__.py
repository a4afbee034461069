"""Live attempts against a local upstream: real sockets, real agents, no model."""
