"""Small vectorised array code that several packages share: bit packing and ranges."""
