"""Which revision of an agent is meant, ran or is active: by digest, by git, by a log."""
