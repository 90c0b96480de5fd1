"""The parts of Sieve that users meet: statements, hooks into Spark, and the command line."""
