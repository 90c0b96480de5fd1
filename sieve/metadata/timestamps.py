"""Converts times between ms since the epoch and their text form in manifests and results."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(ms: int) -> str:
    """Formats a time, given in ms since the epoch, as ISO 8601 in UTC with milliseconds."""
    return (
        datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
    )


def ms_since_epoch(text: str) -> int:
    """Parses an ISO 8601 time, and returns it in ms since the epoch; the inverse of `iso`."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
