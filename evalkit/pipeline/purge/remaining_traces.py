"""Report of a purge: what was removed, and what may still name the document."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from evalkit.core.grouping import group_pairs
from evalkit.pipeline.purge.folder_contents import FolderContents
from evalkit.store import (
    ATTENTION_CHECKS_FOLDER,
    BUNDLES_FOLDER,
    EXTRACTIONS_FOLDER,
    GROUND_TRUTH_FOLDER,
    PACKETS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    TEMPLATES_FOLDER,
    OutputFolder,
    template_file_name,
)
from evalkit.store.change_chain import RECORDED_FOLDERS
from evalkit.store.file_names import CHANGES_FOLDER, NAME_PART_PATTERN, TEMP_FOLDER

#: Folders whose files may name a document in a person's own words.
_FREE_TEXT_FOLDERS = (
    REVIEWS_FOLDER,
    GROUND_TRUTH_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    TEMPLATES_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
)

#: Folders with a file for each document or case, named after it; there are reviews in folders, too.
_DOCUMENT_FOLDERS = (
    BUNDLES_FOLDER,
    RESULTS_FOLDER,
    PACKETS_FOLDER,
    GROUND_TRUTH_FOLDER,
    EXTRACTIONS_FOLDER,
    ATTENTION_CHECKS_FOLDER,
)
_OTHER_FOLDERS = {*RECORDED_FOLDERS, CHANGES_FOLDER, TEMP_FOLDER}.difference(_DOCUMENT_FOLDERS)
_NAME = NAME_PART_PATTERN.pattern
#: Files where evalkit writes them, and those beside its folders.
_OWN_FILE_PATTERN = re.compile(
    rf"[^/]+|(?:{'|'.join(map(re.escape, _OTHER_FOLDERS))})/.*|(?:{'|'.join(_DOCUMENT_FOLDERS)})/{_NAME}|{REVIEWS_FOLDER}/{_NAME}/{_NAME}"
)


@dataclass(frozen=True)
class PurgedDocument:
    """Report of one purged document: what was removed, and what remains."""

    doc_id: str
    sha256: str | None
    removed_files: tuple[str, ...]
    """The names of the removed files, relative to the output folder."""
    deleted_row_counts: Mapping[str, int]
    """The numbers of deleted rows by table of the database; ``production``, ``draws`` and ``runs`` count entries of those files."""
    digested_review_count: int
    """The number of reviews of which only digests are kept."""
    open_case_notes: tuple[str, ...]
    """A sentence for each person who had a case of the document open; that person gets a message when saving."""
    remaining_traces: tuple[str, ...]
    """A sentence for each file or copy that was left and may be about the document."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "doc_id": self.doc_id,
            "sha256": self.sha256,
            "files": list(self.removed_files),
            "rows": dict(self.deleted_row_counts),
            "reviews": self.digested_review_count,
            "was_open": list(self.open_case_notes),
            "stays": list(self.remaining_traces),
        }


def add_remaining_traces(contents: FolderContents, purged_documents: Sequence[PurgedDocument]) -> list[PurgedDocument]:
    """Add to each report a sentence about each thing that may name the document."""
    output_folder, purged_ids = contents.output_folder, {document.doc_id for document in purged_documents}
    path_by_doc_id = {
        document: str(row["file_path"])
        for document, row in contents.row_by_doc_id.items()
        if row["file_path"] is not None
    }
    ids_by_shared_path = group_pairs(
        (path, doc_id) for doc_id, path in path_by_doc_id.items() if doc_id not in purged_ids
    )
    mentions_by_doc_id = _map_mentions_by_doc_id(
        output_folder,
        {
            document: PurePath(path_by_doc_id[document]).name if document in path_by_doc_id else None
            for document in purged_ids
        },
    )
    # As editors, and copies of folders in folders, leave them.
    stray_files = [name for name in sorted(output_folder.map_file_versions()) if not _OWN_FILE_PATTERN.fullmatch(name)]
    return [
        replace(
            document,
            remaining_traces=(
                *_describe_remaining_traces(
                    output_folder, document.doc_id, path_by_doc_id.get(document.doc_id), ids_by_shared_path
                ),
                *mentions_by_doc_id[document.doc_id],
                *(
                    f"{name}, which evalkit did not write, and which may be a copy: look at it, and remove it"
                    for name in stray_files
                    if re.search(rf"/[.#~]*(?:sme_packet_|gt_)?{re.escape(document.doc_id)}(?![A-Za-z0-9_-])", name)
                ),
            ),
        )
        for document in purged_documents
    ]


def _describe_remaining_traces(
    output_folder: OutputFolder, doc_id: str, pdf_path: str | None, ids_by_shared_path: Mapping[str, list[str]]
) -> Iterator[str]:
    if pdf_path is not None:
        yield f"the PDF itself, {pdf_path}: only files below the output folder were removed"
        for other_id in ids_by_shared_path.get(pdf_path, ()):
            yield f"document {other_id}, which was read from the same path: purge it too if it is the same patient's"
    if isinstance(output_folder.root, str):
        yield "the bucket's copies of removed objects (versions, soft delete, replicas): remove them there"
    if output_folder.has_file(template_file_name(doc_id)):
        yield f"{template_file_name(doc_id)}, a bank-statement template with the document's name: remove it if nobody needs it"


def _map_mentions_by_doc_id(
    output_folder: OutputFolder, filename_by_doc_id: Mapping[str, str | None]
) -> Mapping[str, list[str]]:
    """Map each document to sentences that list the files in which it is named.

    Every file is read once. ``filename_by_doc_id`` has the name of each document's PDF.
    """
    encoded_filenames = {
        candidate_id: json.dumps(file_name, ensure_ascii=False)[1:-1].encode()
        for candidate_id, file_name in filename_by_doc_id.items()
        if file_name
    }
    id_by_encoded_id = {candidate_id.encode(): candidate_id for candidate_id in filename_by_doc_id}
    mentions_by_doc_id: dict[str, list[str]] = {candidate_id: [] for candidate_id in filename_by_doc_id}
    for subfolder in _FREE_TEXT_FOLDERS:
        for file_name, content in output_folder.iterate_files_recursively(subfolder):
            mentioned_ids = {
                id_by_encoded_id[candidate_id]
                for candidate_id in _extract_name_candidates(content) & id_by_encoded_id.keys()
            }
            for doc_id in mentioned_ids | {
                candidate_id for candidate_id, filename in encoded_filenames.items() if filename in content
            }:
                mentions_by_doc_id[doc_id].append(f"{file_name}, which names the document: look at it")
    return mentions_by_doc_id


def _extract_name_candidates(content: bytes) -> set[bytes]:
    r"""Extract the words of a JSON file that may name a document.

    Plain words count only if they are quoted alone.

    >>> sorted(_extract_name_candidates(b'{"notes": "see:\\nscan_2 or my scan-3", "of": "scan"}'))
    [b'notes', b'of', b'scan', b'scan-3', b'scan_2']
    """
    candidates = {
        candidate for candidate in _NAME_PATTERN.findall(content) if candidate and not _PLAIN_WORD.fullmatch(candidate)
    }
    return candidates | {*_QUOTED_WORD.findall(content)}


#: The letter of an escape is no part of the name that follows it.
_NAME_PATTERN = re.compile(rb"\\[\\bfnrt]|([A-Za-z0-9_-]+)")
_PLAIN_WORD, _QUOTED_WORD = re.compile(rb"[a-z]+"), re.compile(rb'(?<=")[a-z]+(?=")')
