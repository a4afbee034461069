"""Agents that do what is expected of them, in other styles than the demo's: what a judge must not call broken."""
