"""Reads the scans of queries, with their filters and bytes read, from Spark's event logs."""
