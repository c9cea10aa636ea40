"""Run slow functions in a thread, so that they do not block the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in a daemon thread and return its result or raise its error.

    Work that never ends does not keep the program from exiting.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def notify_loop(callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the event loop has been closed, so nothing awaits the result
            loop.call_soon_threadsafe(lambda: None if future.done() else callback())

    def run_work() -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - raised again in the awaiting coroutine
            failure = error
            notify_loop(lambda: future.set_exception(failure))
        else:
            notify_loop(lambda: future.set_result(value))

    threading.Thread(target=run_work, name="reviewer", daemon=True).start()
    return await future
