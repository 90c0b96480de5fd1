"""The front end's access to the running driver: its JVM, settings, index roots and executors."""
