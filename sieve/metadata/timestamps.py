"""Timestamps: their text form in manifests and results."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(ms: int) -> str:
    """Formats ms since the epoch as ISO 8601 in UTC with milliseconds."""
    return (
        datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
    )


def ms_since_epoch(text: str) -> int:
    """The time in ms since the epoch of an ISO 8601 text; the inverse of `iso`."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
