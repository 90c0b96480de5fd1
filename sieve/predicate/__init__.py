"""Predicate pushdown: the tree of a scan's filter, and its evaluation over indexes."""
