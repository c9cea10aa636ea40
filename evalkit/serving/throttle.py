"""Login attempts, slowed: so many wrong codes from one address, then a pause."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

MOST = 5
SECONDS = 60.0
"""After ``MOST`` wrong codes within this time an address waits until the first of them is so old."""


class Throttle:
    """Counts failures by address in a sliding window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, deque[float]] = {}

    def wait(self, address: str) -> int:
        """Whole seconds until this address may try again; 0: now."""
        self._forget()
        failures = self._failures.get(address)
        if failures is None or len(failures) < MOST:
            return 0
        return 1 + int(failures[0] + SECONDS - self._clock())

    def failed(self, address: str) -> None:
        """A wrong code came from this address."""
        self._failures.setdefault(address, deque()).append(self._clock())

    def _forget(self) -> None:
        oldest = self._clock() - SECONDS
        for address, failures in list(self._failures.items()):
            while failures and failures[0] <= oldest:
                failures.popleft()
            if not failures:
                del self._failures[address]
