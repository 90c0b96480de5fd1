"""Reads Spark's event logs: the scans that ran, their filters, and the files that they read."""
