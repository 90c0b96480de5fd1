"""Predicate pushdown: the tree of a filter, and what indexes prove about it."""
