"""The shape `sieve`: segments of bounded error, each divided into blocks of equal width."""
