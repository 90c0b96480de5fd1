"""Compares ways to skip data on the same rows with the same queries in one run."""
