"""Sieve for Python programs: session settings, statements as functions, and their answers.

``import sieve`` imports this package also on executors and in Sieve's Python process. So this
package imports no part of Sieve but ``sieve.errors``. The functions send statements as text, so
they also work in a session of Spark Connect.
"""
