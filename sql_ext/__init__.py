"""Statements, Spark hooks and the command line: the side of Sieve that Spark users touch."""
