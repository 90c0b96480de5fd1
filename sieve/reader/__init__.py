"""The read path: opens index versions, caches parts of their files, and answers look-ups."""
