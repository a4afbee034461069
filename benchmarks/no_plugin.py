"""A plugin that does nothing, for the plain side of a comparison."""
