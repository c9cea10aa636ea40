"""One writer at a time.

Creating a review file decides who wins (that is the compare-and-swap). What follows from it (ground truth, the
packet's mirror of the status) is several files, and a run may rewrite a packet just while an expert submits: the lock
keeps those in step. It is of one document, so that experts on different ones never wait for each other's disk, or of the
whole folder. It is held for milliseconds, and given back by the system, or by PostgreSQL if the output folder is in a
bucket, if its holder dies.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

from evalkit.store import OutputFolder

#: The suffix that distinguishes documents of one stem, and attention checks of a document.
_HEX_SUFFIX_PATTERN = re.compile(r"(?:-[0-9a-f]{8})+$")


def hold_case_write_lock(output_folder: OutputFolder, case_id: str | None = None) -> AbstractContextManager[None]:
    """Hold the lock for changes of packets, reviews and ground truth.

    Other threads and processes wait. It covers the document or statement template that the case is about, or all
    cases if none is named. Not reentrant: do not nest. StoreError if the output folder cannot be written.
    """
    return output_folder.hold_write_lock(None if case_id is None else get_write_lock_key(case_id))


def get_write_lock_key(case_id: str) -> str:
    """Get the key that all cases share whose reviews affect each other.

    >>> {get_write_lock_key(one) for one in ("scan", "scan.second", "scan.extraction", "scan-0a1b2c3d", "scan-0a1b2c3d-4e5f6a7b")}
    {'scan'}
    """
    return _HEX_SUFFIX_PATTERN.sub("", case_id.partition(".")[0])
