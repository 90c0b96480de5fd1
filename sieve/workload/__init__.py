"""Workload: sums up the predicates of queries, and ranks the indexes that would help them."""
