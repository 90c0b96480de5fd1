"""Comparison of index structures that return the files that may hold a key, at equal bytes."""
