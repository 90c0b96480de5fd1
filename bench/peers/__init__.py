"""Other ways to skip data, on the same rows, by the same queries, in one run."""
