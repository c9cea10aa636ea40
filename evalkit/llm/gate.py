"""How many calls are under way at once."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

#: After "too many", no call begins for so long (seconds) where the provider does not say.
_PAUSE = 1.0


class Gate:
    """Lets so many calls through at once, first come, first served; fewer after the provider said "too many".

    The number is halved then, once for the calls that were under way together, and grows by one for as many calls that
    went well: additive increase, multiplicative decrease, as networks share a line.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._allowed = float(most)
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._clock = clock
        self._resting_until = 0.0
        self._halved_at = -math.inf

    @property
    def allowed(self) -> int:
        """So many at once, now."""
        return max(int(self._allowed), 1)

    async def enter(self) -> float:
        """Wait for a place; when it was had, for ``too_many``."""
        if self._waiting or not self._has_room():
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            self._wake()
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():  # the place was given, and is not wanted any more
                    self.leave()
                raise
        else:
            self._inside += 1
        return self._clock()

    def leave(self) -> None:
        """Give the place back."""
        self._inside -= 1
        self._wake()

    def went_well(self) -> None:
        """A call was answered."""
        self._allowed = min(self._allowed + 1 / self._allowed, self._most)

    def too_many(self, entered: float, seconds: float | None) -> None:
        """A call that had ``entered`` then was turned away; the provider wants ``seconds`` of rest, if it said so."""
        now = self._clock()
        self._resting_until = max(self._resting_until, now + (_PAUSE if seconds is None else seconds))
        if entered > self._halved_at:
            self._halved_at = now
            self._allowed = max(self._allowed / 2, 1.0)

    def _has_room(self) -> bool:
        return self._inside < self.allowed and self._clock() >= self._resting_until

    def _wake(self) -> None:
        while self._waiting and self._has_room():
            place = self._waiting.popleft()
            if not place.done():
                self._inside += 1
                place.set_result(None)
        rest = self._resting_until - self._clock()
        if self._waiting and rest > 0:
            asyncio.get_running_loop().call_later(rest, self._wake)
