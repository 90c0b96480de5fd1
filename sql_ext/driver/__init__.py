"""The front end's access to the running driver: the driver's JVM, settings, roots and executors."""
