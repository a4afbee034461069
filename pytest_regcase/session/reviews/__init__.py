"""Whether cases and simulations are good ones: their files, what they make an agent do, whether they can fail."""
