"""Access of the front end to the running driver: JVM, settings, roots, executors."""
