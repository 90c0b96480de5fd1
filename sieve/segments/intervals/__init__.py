"""The shape `intervals`: planned at a cost per byte, quantised, encoded and decoded."""
