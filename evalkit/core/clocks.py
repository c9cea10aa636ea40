"""Format stored moments: ISO 8601, UTC, in one of two precisions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

Precision = Literal["milliseconds", "seconds"]


def utc_now() -> datetime:
    """Return the present moment: the default clock."""
    return datetime.now(UTC)


def format_iso_seconds(moment: datetime) -> str:
    """Format a moment of a review or packet to the second: it compares as text.

    >>> format_iso_seconds(datetime(2026, 3, 1, 9, 30, 5, 250_000, UTC))
    '2026-03-01T09:30:05+00:00'
    """
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def format_zulu(moment: datetime, precision: Precision = "milliseconds") -> str:
    """Format a moment of a run or log, which is in UTC.

    >>> format_zulu(datetime(2026, 3, 1, 9, 30, 5, 250_000, UTC))
    '2026-03-01T09:30:05.250Z'
    """
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def format_zulu_now(precision: Precision = "milliseconds") -> str:
    """Format this moment, as a run writes it."""
    return format_zulu(utc_now(), precision)
