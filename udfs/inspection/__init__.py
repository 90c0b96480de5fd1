"""``sieve_inspect``: returns a picture and a summary of an index."""
