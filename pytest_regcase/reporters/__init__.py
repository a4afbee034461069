"""GateDecision -> text or file, one module each."""
