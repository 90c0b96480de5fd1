"""Vectorised array primitives shared by several packages: bit packing and interval sets."""
