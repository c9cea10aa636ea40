"""The write lock for packets, reviews and ground truth: one writer per document.

The exclusive creation of a review file decides which of two reviews is saved. Several other files follow from a review
(ground truth, the status in the packet), and a run may rewrite a packet while an expert submits: the lock keeps all these
files consistent. The lock covers one document, so that experts on different documents never wait for each other, or the
whole folder. It is held for milliseconds. If its holder dies, the operating system releases it, or PostgreSQL if the
output folder is in a bucket.
"""

import re
from contextlib import AbstractContextManager

from evalkit.store import OutputFolder

#: The hexadecimal endings of ids by which documents of the same file name, and a document's attention checks, differ.
_HEX_SUFFIX_PATTERN = re.compile(r"(?:-[0-9a-f]{8})+$")


def hold_case_write_lock(output_folder: OutputFolder, case_id: str | None = None) -> AbstractContextManager[None]:
    """Hold the write lock for cases, reviews and ground truth in a ``with`` block.

    Other threads and processes wait. The lock covers the document or statement template that the case is about, or all cases
    if ``case_id`` is None. Not reentrant: do not nest. StoreError if the output folder cannot be written.
    """
    return output_folder.hold_write_lock(None if case_id is None else get_write_lock_key(case_id))


def get_write_lock_key(case_id: str) -> str:
    """Get the lock key of a case; cases whose reviews affect each other share one key.

    >>> {get_write_lock_key(one) for one in ("scan", "scan.second", "scan.extraction", "scan-0a1b2c3d", "scan-0a1b2c3d-4e5f6a7b")}
    {'scan'}
    """
    return _HEX_SUFFIX_PATTERN.sub("", case_id.partition(".")[0])
