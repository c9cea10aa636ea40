"""Deletion of documents and of everything derived from them.

Only hashes of reviews are kept. ``purged/0001.json``, ``0002.json`` …: one record per purge, never changed, chained by
hash. A record has no name and no word of the document: its SHA-256, and for each of its reviews the SHA-256 of the
file, the hash it was chained to, who submitted it, when, and with what outcome; and what an audit
said about the answer, so that purging wrong ones proves nothing. So a purged chain still verifies, a
removed one does not, and a later run of the same bytes recognises them.

``purging.json`` names what is being purged until all is done: after a kill, the next purge finishes it first.
"""

from evalkit.pipeline.purge.deletion import map_purge_file_names_by_doc_id, purge
from evalkit.pipeline.purge.purge_record import (
    AuditAnswer,
    PurgedAnswer,
    PurgeRecord,
    is_purge_unfinished,
    parse_purge_record,
    read_purge_records,
)
from evalkit.pipeline.purge.remaining_traces import PurgedDocument
from evalkit.pipeline.purge.selection import (
    ExpiredDocuments,
    exclude_purged,
    find_doc_ids_of_patient,
    find_expired_documents,
    find_restored_purged_doc_ids,
)

__all__ = [
    "AuditAnswer",
    "ExpiredDocuments",
    "PurgeRecord",
    "PurgedAnswer",
    "PurgedDocument",
    "exclude_purged",
    "find_doc_ids_of_patient",
    "find_expired_documents",
    "find_restored_purged_doc_ids",
    "is_purge_unfinished",
    "map_purge_file_names_by_doc_id",
    "parse_purge_record",
    "purge",
    "read_purge_records",
]
