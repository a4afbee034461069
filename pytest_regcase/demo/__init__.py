"""A small good agent, and the same loop broken in one way each."""
