"""The shape `intervals`: plans intervals of keys by a cost per byte, and encodes them."""
