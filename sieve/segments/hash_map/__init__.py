"""The shape `map`: a binary fuse function from the hash of a key to its location."""
