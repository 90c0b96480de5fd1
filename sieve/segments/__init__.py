"""The index structure: the shapes of segments, their byte formats, and how a build chooses them."""
