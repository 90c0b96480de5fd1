"""The shapes `intervals` and `runs`: planned at a cost per byte, quantised, encoded and decoded."""
