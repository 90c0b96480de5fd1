"""Metadata of an index: versions, registrations, file lists, and the commit protocol."""
