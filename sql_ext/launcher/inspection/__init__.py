"""``sieve inspect``: the picture of an index, into a file."""
