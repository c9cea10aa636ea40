"""Exclusion of purged documents from runs, unless they are imported again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evalkit.errors import UsageError
from evalkit.pipeline.document_discovery import DiscoveredDocuments
from evalkit.pipeline.purge.purge_record import is_purge_unfinished, read_intent, read_purge_records
from evalkit.store import OutputFolder


def exclude_purged(
    output_folder: OutputFolder,
    discovered: DiscoveredDocuments,
    known_sha256s: Iterable[str],
    *,
    even_purged: bool = False,
) -> DiscoveredDocuments:
    """Drop the documents that were purged, and add an error for each of them.

    ``known_sha256s`` are the SHA-256 of documents in the folder: one that was imported again after its purge stays.
    With ``even_purged``, only a document whose purge is not finished is dropped.
    """
    purged_at_by_sha256: dict[str | None, str] = {}
    if not even_purged:
        present_sha256s = set(known_sha256s)
        purged_at_by_sha256 = {
            document.sha256: document.purged_at
            for document in read_purge_records(output_folder)
            if document.sha256 not in present_sha256s
        }
    if is_purge_unfinished(output_folder):
        intent = read_intent(output_folder)
        purged_at_by_sha256[intent.sha256] = intent.purged_at
    purged_at_by_sha256.pop(None, None)
    purged_errors = [
        UsageError(
            f"{document.path.name} was purged on {purged_at_by_sha256[document.sha256][:10]}, and is left out",
            code="DOCUMENT-PURGED",
            remedy="Remove the file, or process it again with --even-purged.",
        )
        for document in discovered.sources
        if document.sha256 in purged_at_by_sha256
    ]
    return replace(
        discovered,
        sources=tuple(document for document in discovered.sources if document.sha256 not in purged_at_by_sha256),
        problems=(*discovered.problems, *purged_errors),
    )
