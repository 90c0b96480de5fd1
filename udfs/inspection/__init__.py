"""``sieve_inspect``: an index as a picture and a summary."""
