"""What this process uses of the running Spark driver: its JVM, settings, roots, executors."""
