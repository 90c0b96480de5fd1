"""Order-preserving encoding of column values as 64-bit key codes, and hashing."""
