"""Sieve for Python programs: session settings, statements as functions, and their answers.

``import sieve`` also imports this package on executors and in the front end, so the package imports
only ``sieve.errors``. The functions send statements as text, so they also work with Spark Connect.
"""
