"""The order of the stages; never prints and never imports pytest."""
