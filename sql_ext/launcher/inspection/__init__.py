"""``sieve inspect``: draws an index and prints its facts."""
