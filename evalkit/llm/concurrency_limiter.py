"""Limit the calls that are under way at once."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

#: Seconds without new calls after a refusal for rate, if the provider does not say.
_DEFAULT_PAUSE_SECONDS = 1.0


class AimdLimiter:
    """Limits calls under way, in order; fewer after the provider refused one.

    The limit is halved then, once for the calls that were under way together, and grows by one for as many calls that
    went well: additive increase, multiplicative decrease, as in TCP.
    """

    def __init__(self, max_in_flight: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_in_flight = max_in_flight
        self._limit = float(max_in_flight)
        self._in_flight = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._clock = clock
        self._paused_until = 0.0
        self._halved_at = -math.inf

    @property
    def current_limit(self) -> int:
        """Calls that may be under way now."""
        return max(int(self._limit), 1)

    async def acquire_slot_and_get_time(self) -> float:
        """Wait for a slot and return the clock's time then, for ``record_throttling``."""
        if self._waiters or not self._has_free_slot():
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            self._wake_waiters()
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():  # the slot was granted, and is not needed any more
                    self.release_slot()
                raise
        else:
            self._in_flight += 1
        return self._clock()

    def release_slot(self) -> None:
        """Release the slot."""
        self._in_flight -= 1
        self._wake_waiters()

    def record_success(self) -> None:
        """Count a call that was answered."""
        self._limit = min(self._limit + 1 / self._limit, self._max_in_flight)

    def record_throttling(self, acquired_at: float, pause_seconds: float | None) -> None:
        """Count a call, begun at ``acquired_at``, that the provider refused for its rate.

        ``pause_seconds``: seconds that the provider asked to wait; None if it did not say.
        """
        now = self._clock()
        self._paused_until = max(
            self._paused_until, now + (_DEFAULT_PAUSE_SECONDS if pause_seconds is None else pause_seconds)
        )
        if acquired_at > self._halved_at:
            self._halved_at = now
            self._limit = max(self._limit / 2, 1.0)

    def _has_free_slot(self) -> bool:
        return self._in_flight < self.current_limit and self._clock() >= self._paused_until

    def _wake_waiters(self) -> None:
        while self._waiters and self._has_free_slot():
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._in_flight += 1
                waiter.set_result(None)
        pause_left = self._paused_until - self._clock()
        if self._waiters and pause_left > 0:
            asyncio.get_running_loop().call_later(pause_left, self._wake_waiters)
