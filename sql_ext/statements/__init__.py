"""SIEVE statements: the parser makes a command record of the text, and a function runs it."""
