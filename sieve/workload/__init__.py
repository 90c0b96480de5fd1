"""Workload: sums up the scans of queries by predicate, and ranks indexes that would help them."""
