"""The SQL table functions of Sieve. Each function returns data about an index as rows."""
