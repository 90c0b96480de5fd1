"""SQL table functions of Sieve; each returns data of an index as rows."""
