"""Execution of coroutines for synchronous callers, also in Jupyter."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from evalkit.core.document_cache import forget_document_texts

T = TypeVar("T")

log = logging.getLogger(__name__)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in another thread, and return its result.

    In Jupyter, the loop of the caller's thread is already running.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    finished_event = threading.Event()
    threading.Thread(target=_run_event_loop, args=(loop, task, finished_event), name="evalkit", daemon=True).start()
    interruption: KeyboardInterrupt | None = None
    while not finished_event.is_set():
        try:
            # In slices: an interrupt reaches the main thread only between them. Not Thread.join, which after an
            # interrupt considers the thread ended (Python 3.11).
            finished_event.wait(0.2)
        except KeyboardInterrupt as error:
            # The first interrupt starts nothing new and lets paid calls finish; the next one drops these calls too.
            if interruption is None:
                log.warning("interrupted: waiting for running calls; press Ctrl-C again to drop them")
            interruption = error
            loop.call_soon_threadsafe(task.cancel)
    if interruption:
        raise interruption
    return task.result()


def _run_event_loop(loop: asyncio.AbstractEventLoop, task: Awaitable[Any], finished_event: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(asyncio.wait([task]))  # type: ignore[type-var]
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    finally:
        forget_document_texts()
        finished_event.set()
