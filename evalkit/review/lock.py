"""One writer at a time.

Creating a review file decides who wins (that is the compare-and-swap). What follows from it (ground truth, the
packet's mirror of the status) is several files, and a run may rewrite a packet just while an expert submits: the lock
keeps those in step. It is held for milliseconds, and given back by the system if its holder dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from evalkit.errors import StoreError
from evalkit.store import Files
from evalkit.store.files import open_lock

_LOCK = ".review.lock"


@contextmanager
def writing(files: Files) -> Iterator[None]:
    """Wait for the turn to change packets, reviews or ground truth; other threads and processes wait meanwhile.

    Not reentrant: do not nest. StoreError where the output folder cannot be written.
    """
    try:
        files.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = open_lock(files.root / _LOCK)
    except OSError as error:
        raise StoreError(
            f"the output folder {files.root} cannot be written ({error.strerror})",
            code="STORE-FAILED",
            remedy="Mend its rights, or name another folder.",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
