"""A picture of an index: an image in a notebook, and a summary in a terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A picture of an index.

    Attributes:
        summary: what the picture shows, in lines of text.
        png: the bytes of a PNG file.
    """

    summary: str
    png: bytes

    def __repr__(self) -> str:
        return self.summary

    def _repr_png_(self) -> bytes:
        """The picture, for notebooks."""
        return self.png
