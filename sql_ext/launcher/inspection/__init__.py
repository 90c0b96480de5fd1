"""``sieve inspect`` writes the picture of an index into a file."""
