"""Workload: the predicates of queries on tables, and the indexes that pay for them."""
