"""Waiting, in a test, for what must come: long, since that costs nothing where it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

#: Longer than a machine ever takes that has much else to do; of a wait that is to fail, nothing is said by its length.
SECONDS = 60


def eventually(is_so: Callable[[], bool], *, every: float = 0.05) -> bool:
    """Whether it becomes true in time."""
    end = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True


async def eventually_async(is_so: Callable[[], bool]) -> bool:
    """Whether it becomes true in time, while other tasks of the loop go on."""
    end = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.01)
    return True
