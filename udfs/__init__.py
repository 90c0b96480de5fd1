"""SQL table functions of Sieve; each is a thin wrapper over the index."""
