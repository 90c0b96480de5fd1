"""Index builds: Spark executors read a column and write the runs of a version."""
