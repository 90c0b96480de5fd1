"""SIEVE statements: the parser converts a text to a command record, and a function runs it."""
