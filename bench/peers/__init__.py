"""Compares ways to skip data, on the same rows and with the same queries, in one run."""
