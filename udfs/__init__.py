"""SQL functions of Sieve, each a thin wrapper over the index."""
