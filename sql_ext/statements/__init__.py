"""SIEVE statements: the parser converts text to a command record, which a function then runs."""
