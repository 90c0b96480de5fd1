"""Workload: sums up the scans of queries, grouped by predicate, and ranks useful indexes."""
