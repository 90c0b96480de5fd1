"""A picture of an index: a notebook shows an image, and a terminal shows a summary."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A picture of an index.

    Attributes:
        summary: lines of text that say what the picture shows.
        png: the picture as the contents of a PNG file.
    """

    summary: str
    png: bytes

    def __repr__(self) -> str:
        return self.summary

    def _repr_png_(self) -> bytes:
        """The picture; notebooks call this method."""
        return self.png
