"""Versions, registrations and lists of files, and how a commit becomes visible."""
