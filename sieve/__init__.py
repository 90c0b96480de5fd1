"""The index itself: keys, segments, versions, look-ups; knows nothing of SQL text."""
