"""Predicate pushdown: a tree, and what indexes prove of it (might match, or cannot match)."""
