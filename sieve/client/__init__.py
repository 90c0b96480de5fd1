"""Sieve as a Python program uses it: settings of a session, statements as functions, answers."""
