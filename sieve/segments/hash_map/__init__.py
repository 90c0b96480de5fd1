"""The shape `map`: a binary fuse filter that maps the hash of a key to the key's locations."""
