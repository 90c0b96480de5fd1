"""Compares systems that skip data. All systems have the same rows and run the same queries."""
