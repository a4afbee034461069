"""pytest-regcase: one failed agent trial becomes one regression case that stays honest."""
