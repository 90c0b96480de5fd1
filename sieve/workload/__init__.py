"""Workload: the predicates of queries on tables, and the indexes that these queries justify."""
