"""Run what takes long beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """What ``work`` gives, in a thread of its own: one that does not end holds up nobody, not even the process's end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def notify_loop(callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody waits for it any more
            loop.call_soon_threadsafe(lambda: None if future.done() else callback())

    def run_work() -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            failure = error
            notify_loop(lambda: future.set_exception(failure))
        else:
            notify_loop(lambda: future.set_result(value))

    threading.Thread(target=run_work, name="reviewer", daemon=True).start()
    return await future
