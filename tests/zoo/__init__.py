"""Models in plain torch style, each run against torch's stored results, eager and compiled."""
