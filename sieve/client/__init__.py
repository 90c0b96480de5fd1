"""Sieve for Python programs: settings of a session, statements as functions, answers.

The package imports only ``sieve.errors``, since ``import sieve`` also runs on executors and in the
front end. It sends statements as text, so it works in a session of Spark Connect, too.
"""
