"""Column values as order-preserving 64-bit key codes, and as hashes."""
