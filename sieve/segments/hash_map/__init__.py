"""The shape `map`: a binary fuse filter with values, from the hash of a key to its locations."""
