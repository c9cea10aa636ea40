"""One writer at a time.

Creating a review file decides who wins (that is the compare-and-swap). What follows from it (ground truth, the
packet's mirror of the status) is several files, and a run may rewrite a packet just while an expert submits: the lock
keeps those in step. It is held for milliseconds, and given back by the system, or by PostgreSQL where the output folder
is in a bucket, if its holder dies.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from evalkit.store import Files


def writing(files: Files) -> AbstractContextManager[None]:
    """Wait for the turn to change packets, reviews or ground truth; other threads and processes wait meanwhile.

    Not reentrant: do not nest. StoreError where the output folder cannot be written.
    """
    return files.turn()
