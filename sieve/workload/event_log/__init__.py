"""Reads scans from Spark's event logs: each scan's filters, and the number of bytes it read."""
