"""The shape `sieve`: segments under an error bound, cut into blocks of equal width."""
