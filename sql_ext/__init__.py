"""The parts of Sieve that users call: SQL statements, hooks into Spark, and the command line."""
