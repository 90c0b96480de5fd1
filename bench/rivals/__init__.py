"""Structures that say which files may hold a key, against each other at equal bytes."""
