"""Rate limiter for wrong login codes, by client address."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

MAX_FAILURES = 5
#: Length of the window: after ``MAX_FAILURES`` wrong codes within these seconds, an address has to wait until the first
#: of these failures is older than the window.
WINDOW_SECONDS = 60.0


class LoginThrottle:
    """Times of wrong login codes by client address, in a sliding window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures_by_address: dict[str, deque[float]] = {}

    def get_seconds_to_wait(self, address: str) -> int:
        """Return the whole seconds until this address may try again; 0 if it may try now."""
        self._remove_old_failures()
        failures = self._failures_by_address.get(address)
        if failures is None or len(failures) < MAX_FAILURES:
            return 0
        return 1 + int(failures[0] + WINDOW_SECONDS - self._clock())

    def record_failure(self, address: str) -> None:
        """Record that this address sent a wrong code now."""
        self._failures_by_address.setdefault(address, deque()).append(self._clock())

    def _remove_old_failures(self) -> None:
        window_start = self._clock() - WINDOW_SECONDS
        for address, failures in list(self._failures_by_address.items()):
            while failures and failures[0] <= window_start:
                failures.popleft()
            if not failures:
                del self._failures_by_address[address]
