"""SIEVE statements: text to a record, and a record to the function that runs it."""
