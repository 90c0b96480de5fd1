"""Gives the front end access to the running driver: its JVM, settings, roots and executors."""
