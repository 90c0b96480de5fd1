"""The index structure: segment shapes, their byte formats, and their choice under a budget."""
