"""Moments as they are stored: ISO 8601, UTC, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime


def current_timestamp() -> str:
    """This moment."""
    return format_timestamp(datetime.now(UTC))


def format_timestamp(moment: datetime) -> str:
    """That moment, which is in UTC."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
