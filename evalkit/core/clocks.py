"""Timestamps of stored files and logs: ISO 8601 in UTC, in one of two precisions."""

from datetime import UTC, datetime
from typing import Literal

Precision = Literal["milliseconds", "seconds"]


def utc_now() -> datetime:
    """Return the current time in UTC, the clock that the program uses by default."""
    return datetime.now(UTC)


def format_iso_seconds(moment: datetime) -> str:
    """Format a time in UTC to the second, so that sorting as text sorts by time.

    Reviews and packets store times in this format.

    >>> format_iso_seconds(datetime(2026, 3, 1, 9, 30, 5, 250_000, UTC))
    '2026-03-01T09:30:05+00:00'
    """
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def format_zulu(moment: datetime, precision: Precision = "milliseconds") -> str:
    """Format a UTC time with ``Z`` as its time zone, as runs and logs store it.

    >>> format_zulu(datetime(2026, 3, 1, 9, 30, 5, 250_000, UTC))
    '2026-03-01T09:30:05.250Z'
    """
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def format_zulu_now(precision: Precision = "milliseconds") -> str:
    """Format the current time as ``format_zulu`` does."""
    return format_zulu(utc_now(), precision)
