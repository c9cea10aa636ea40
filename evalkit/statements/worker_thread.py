"""Run slow functions in a thread, so that they do not block the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in a daemon thread and return its result or raise its error.

    Work that never ends does not keep the program from exiting.
    """
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # or a cancelled caller would cancel it, and no result could be set

    def run_work() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised again in the awaiting coroutine
            outcome.set_exception(error)

    threading.Thread(target=run_work, name="reviewer", daemon=True).start()
    return await asyncio.wrap_future(outcome)
