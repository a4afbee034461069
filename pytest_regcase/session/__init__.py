"""The order of the stages; never prints and never imports pytest.

`plan`, `attempt`, `gate` and `adopt` are the four orders of stages themselves. What they are made of, and what is
done with their results, stands in the rooms beside them; `pyproject.toml` has which may use which.
"""
