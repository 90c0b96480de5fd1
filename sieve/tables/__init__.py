"""Tables of Spark's catalog as the index sees them."""
