"""Building the runs of a version on Spark's executors."""
