"""``sieve inspect``: an index drawn, and told in a few lines."""
