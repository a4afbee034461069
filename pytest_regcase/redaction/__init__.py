"""Removes secrets and home paths before anything is written, and counts them."""
