"""Sieve: a data-skipping index for Spark SQL tables."""

__version__ = "0.1.0"
