"""Index builds: Spark executors read a column, and write the index data of a version."""
