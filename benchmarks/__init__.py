"""What the supplier costs, measured against a bare server in the same run. Not part of the tests."""
