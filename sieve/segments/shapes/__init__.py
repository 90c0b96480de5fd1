"""The shapes `intervals` and `runs`: planned at a price, quantised, written and decoded."""
