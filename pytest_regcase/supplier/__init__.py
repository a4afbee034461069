"""The stand-in for the agent's model supplier: replies, faults, wires, the wire log."""
