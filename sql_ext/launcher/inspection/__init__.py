"""The command ``sieve inspect``, which draws a picture of an index and writes it to a file."""
