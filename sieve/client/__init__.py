"""Sieve for Python programs: settings of a session, statements as functions, answers."""
