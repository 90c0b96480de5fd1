"""Sieve for Python programs: session settings, statements as functions, and their answers.

The package imports only ``sieve.errors``, since ``import sieve`` also runs on executors and in the
front end. The package sends statements as text, so it also works in a session of Spark Connect.
"""
