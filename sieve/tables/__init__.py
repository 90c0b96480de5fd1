"""Tables of Spark's catalog: their metadata, files and rows."""
