"""Limit the number of calls that run at the same time."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

#: Seconds without new calls after the provider refused a call for its rate, if the provider names no time.
_DEFAULT_PAUSE_SECONDS = 1.0


class AimdLimiter:
    """A limit of concurrent calls that falls after refusals and rises slowly.

    Additive increase, multiplicative decrease, as in TCP: a call refused for its rate halves the limit, once for all
    calls that ran at that time; each full round of successful calls raises it by one, up to ``max_in_flight``. Waiting
    calls get slots in their order.
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
        """Number of calls that may run at the same time now."""
        return max(int(self._limit), 1)

    async def acquire_slot_and_get_time(self) -> float:
        """Wait for a free slot, and return the time at which it was acquired.

        ``record_throttling`` needs this time; ``release_slot`` must follow.
        """
        if self._waiters or not self._has_free_slot():
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            self._wake_waiters()
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():  # the slot was granted, but the caller no longer needs it
                    self.release_slot()
                raise
        else:
            self._in_flight += 1
        return self._clock()

    def release_slot(self) -> None:
        """Free a slot for the next waiting call."""
        self._in_flight -= 1
        self._wake_waiters()

    def record_success(self) -> None:
        """Raise the limit a little after a successful call."""
        self._limit = min(self._limit + 1 / self._limit, self._max_in_flight)

    def record_throttling(self, acquired_at: float, pause_seconds: float | None) -> None:
        """Halve the limit and pause new calls after the provider refused a call.

        ``acquired_at``: time at which the call got its slot. ``pause_seconds``: seconds that the provider asked to
        wait; None if it named no time.
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
