"""The part of Sieve that Spark users use directly: statements, Spark hooks, command line."""
