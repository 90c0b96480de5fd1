"""The read path: opens index versions and answers look-ups from cached parts of their files."""
