"""Compares index structures of equal size. Each structure returns the files that can hold a key."""
