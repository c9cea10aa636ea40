"""What all services that are asked over HTTP have in common: how long they ask to wait, and libraries that talk."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def seconds_to_wait(text: str) -> float | None:
    """The seconds that a ``Retry-After`` or a Google ``retryDelay`` means: ``12``, ``1.5s``, an HTTP date; else None.

    >>> seconds_to_wait("12"), seconds_to_wait("1.5s"), seconds_to_wait("-5"), seconds_to_wait("soon")
    (12.0, 1.5, 0.0, None)
    >>> seconds_to_wait("Wed, 21 Oct 2015 07:28:00 GMT")
    0.0
    """
    try:
        wait = float(text.removesuffix("s"))
    except ValueError:
        try:
            wait = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):  # no date; one without a time zone; one beyond all years
            return None
    return max(0.0, wait) if math.isfinite(wait) else None


def silence(libraries: Collection[str]) -> None:
    """Switch off these packages' loggers, and all below them, whatever they are set to later.

    For libraries that quote what is sent and what comes back: document text and keys belong into no log.
    """
    for name in (*libraries, *logging.getLogger().manager.loggerDict):
        if any(f"{name}.".startswith(f"{library}.") for library in libraries):
            logger = logging.getLogger(name)
            logger.disabled = True
            # For those below it that are not there yet.
            logger.setLevel(logging.CRITICAL + 1)
