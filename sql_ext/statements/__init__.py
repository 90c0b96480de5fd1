"""SIEVE statements: the parser converts text to command records, and functions run the records."""
