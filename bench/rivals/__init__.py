"""Compares index structures of equal size, which return the files that can hold a key."""
