"""The structure of an index: its shapes, their bytes, and their choice under a budget."""
