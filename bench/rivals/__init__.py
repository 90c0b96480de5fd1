"""Compares index structures of equal size that return the files that can hold a key."""
