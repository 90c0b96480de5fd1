"""Reads Spark's event logs: which scans ran, what they asked, and what they read."""
