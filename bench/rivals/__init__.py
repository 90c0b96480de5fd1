"""Compares index structures of equal size. Each of them returns the files that can hold a key."""
