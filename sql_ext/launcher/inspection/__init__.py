"""``sieve inspect``: plots an index and prints a summary of it."""
