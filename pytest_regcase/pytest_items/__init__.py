"""What pytest sees of a gate run: collectors, items, reports, summary, exit status. It decides nothing.

Loaded under ``--regcase`` only. The rest of the package knows nothing of pytest; this is the one place that does.
"""
