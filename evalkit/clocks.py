"""Moments as they are stored: ISO 8601, UTC, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """This moment."""
    return to_the_millisecond(datetime.now(UTC))


def to_the_millisecond(at: datetime) -> str:
    """That moment, which is in UTC."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
