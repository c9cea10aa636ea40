"""Pools of worker processes that end with the process that started them."""

import os
import signal
import threading
import time

from loky import ProcessPoolExecutor

#: Seconds between two checks whether the parent process still runs.
_PARENT_POLL_SECONDS = 2


def create_process_pool(worker_count: int) -> ProcessPoolExecutor:
    """Create a pool of worker processes that end when this process ends."""
    return ProcessPoolExecutor(max_workers=worker_count, initializer=_prepare_worker_process, initargs=(os.getpid(),))


def _prepare_worker_process(parent_pid: int) -> None:
    """End this process when the run is gone, which a thread watches, or a timer is up."""

    def watch_parent() -> None:
        while os.getppid() == parent_pid:
            time.sleep(_PARENT_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch_parent, name="parent-watch", daemon=True).start()
    for timer_signal in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(timer_signal, signal.SIG_DFL)
