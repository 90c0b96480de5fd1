"""Compares index structures of equal size that return the files that may hold a key."""
