"""Building the contents of a version with Spark."""
