"""Everything stored about a document: its cases, its files, its SHA-256."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

from evalkit.core.grouping import group_pairs
from evalkit.errors import NotFound, StoreError
from evalkit.review import (
    ADJUDICATION_SUFFIX,
    SECOND_SUFFIX,
    get_attention_check_file_name,
    get_base_case_id,
    list_document_case_ids,
    list_revisions,
)
from evalkit.review.attention_checks import map_check_case_ids_by_doc_id
from evalkit.review.kinds import find_case_kind
from evalkit.store import (
    BUNDLES_FOLDER,
    EXTRACTIONS_FOLDER,
    GROUND_TRUTH_FOLDER,
    PACKETS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    RUNS_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    converted_file_name,
    extraction_file_name,
    ground_truth_file_name,
    kept_file_name,
    packet_file_name,
    result_file_name,
    review_file_name,
)

#: Accepts every schema version: files of a newer evalkit are purged too.
_ANY_VERSION = 1 << 31


@dataclass(frozen=True)
class FolderContents:
    """Documents and cases of an output folder, read once and queried often.

    Valid while the run lock is held: runs, draws, planted faults and templates, which add documents and cases, take
    that lock too. Meanwhile experts can only add second opinions and adjudications.
    """

    output_folder: OutputFolder
    index: OutputIndex
    row_by_doc_id: Mapping[str, Mapping[str, Any]]
    """The index's rows by doc_id, as they were when read: purged documents are not removed from here."""
    case_ids_by_stem: Mapping[str, list[str]]
    """The case_ids by the part before the first dot: the name of a document or of an attention check."""
    check_case_ids_by_doc_id: Mapping[str, list[str]]
    """The case_ids of attention checks, by the doc_id of the document that they show."""
    template_case_ids_by_doc_id: Mapping[str, list[str]]
    """The case_ids of templates, by the doc_id of the statement that the template was tried on: such a case is named
    after the template."""

    @classmethod
    def read(cls, output_folder: OutputFolder, index: OutputIndex) -> FolderContents:
        """Read the documents and cases of an output folder."""
        case_ids_by_stem, template_case_ids_by_doc_id = defaultdict(list), defaultdict(list)
        for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER):
            case_ids_by_stem[case_id.partition(".")[0]].append(case_id)
        for subfolder, prefix in ((PACKETS_FOLDER, "sme_packet_"), (GROUND_TRUTH_FOLDER, "gt_")):
            for name in output_folder.list_json_files(subfolder):
                case_id = PurePath(name).name.removeprefix(prefix).removesuffix(".json")
                case_ids_by_stem[case_id.partition(".")[0]].append(case_id)
                if not find_case_kind(case_id).is_named_after_document:
                    doc_id = read_json_or_empty(output_folder, name).get("doc_id")
                    if isinstance(doc_id, str):
                        template_case_ids_by_doc_id[doc_id].append(case_id)
        return cls(
            output_folder,
            index,
            {row["doc_id"]: row for row in index.list_documents()},
            case_ids_by_stem,
            map_check_case_ids_by_doc_id(output_folder),
            template_case_ids_by_doc_id,
        )

    @cached_property
    def run_names(self) -> Sequence[str]:
        """Names of all runs, each of which may have stored results of a document."""
        return self.output_folder.list_subfolder_names(RUNS_FOLDER)

    @cached_property
    def template_review_files_by_sha256(self) -> Mapping[str, list[str]]:
        """Files of template reviews, by the SHA-256 of the bank statement."""
        return group_pairs(
            (sha256, name)
            for template_id in self.output_folder.list_subfolder_names(TEMPLATE_REVIEWS_FOLDER)
            for name in self.output_folder.list_json_files(f"{TEMPLATE_REVIEWS_FOLDER}/{template_id}")
            if isinstance(sha256 := read_json_or_empty(self.output_folder, name).get("statement_sha256"), str)
        )

    def list_doc_ids(self) -> list[str]:
        """List the doc_ids of all documents with a row in the index or a file, sorted.

        Of bank statements only the bundle exists.
        """
        file_names = (
            name
            for subfolder in (RESULTS_FOLDER, EXTRACTIONS_FOLDER, BUNDLES_FOLDER)
            for name in self.output_folder.list_json_files(subfolder)
        )
        return sorted({*self.row_by_doc_id, *(PurePath(name).stem for name in file_names)})

    def list_possible_case_ids(self, doc_id: str) -> tuple[str, ...]:
        """List the case_ids of all cases that can exist about the document.

        Second opinions and adjudications are included, whether they exist or not: they may be requested at any time,
        and the database still has the text of a withdrawn one.
        """
        check_ids = {
            *self.check_case_ids_by_doc_id.get(doc_id, ()),
            *self.index.list_case_ids_showing_document(doc_id),
        }
        own_ids = (case_id for name in (doc_id, *check_ids) for case_id in self.case_ids_by_stem.get(name, ()))
        base_ids = {
            *list_document_case_ids(doc_id),
            *check_ids,
            *own_ids,
            *self.template_case_ids_by_doc_id.get(doc_id, ()),
        }
        return tuple(
            sorted(
                {
                    get_base_case_id(base_id) + suffix
                    for base_id in base_ids
                    for suffix in ("", SECOND_SUFFIX, ADJUDICATION_SUFFIX)
                }
            )
        )

    def add_attached_doc_ids(self, doc_ids: Iterable[str]) -> list[str]:
        """Add the doc_ids of mails' attachments, each before the doc_id of its mail.

        So a purge that was killed can be repeated: the mail, by whose path they are known, is there until they are gone.
        """
        path_by_doc_id = {doc_id: str(row["file_path"]) for doc_id, row in self.row_by_doc_id.items()}
        return list(
            dict.fromkeys(
                found_id
                for doc_id in doc_ids
                for found_id in (
                    *(
                        other_id
                        for other_id, path in path_by_doc_id.items()
                        if doc_id in path_by_doc_id and path.startswith(f"{path_by_doc_id[doc_id]}/")
                    ),
                    doc_id,
                )
            )
        )

    def has_document(self, doc_id: str) -> bool:
        """Return True if the document has a row in the index or a file."""
        if not re.fullmatch(r"[A-Za-z0-9_-]+", doc_id):
            return False
        possible_files = self.list_possible_document_files(doc_id, None, self.list_possible_case_ids(doc_id))
        return doc_id in self.row_by_doc_id or any(map(self.output_folder.has_file, possible_files))

    def require_document_case_ids(self, doc_id: str) -> tuple[str, ...]:
        """Return ``list_possible_case_ids``. NotFound if the document does not exist."""
        if self.has_document(doc_id):
            return self.list_possible_case_ids(doc_id)
        raise NotFound(
            f"there is no document {doc_id!r}",
            code="PURGE-NOT-FOUND",
            remedy="Give the doc_id that `evalkit run` printed. All cases of the document are deleted too.",
        )

    def list_possible_document_files(self, doc_id: str, sha256: str | None, case_ids: Iterable[str]) -> Iterator[str]:
        """Yield the names of all files about the document; some may not exist.

        In the order in which they may be removed: an attention check's packet would be recreated from its record, and
        results are looked up in bundles.
        """
        all_case_ids = tuple(case_ids)
        yield from map(get_attention_check_file_name, all_case_ids)
        yield from map(packet_file_name, all_case_ids)
        yield from (
            review_file_name(case_id, revision)
            for case_id in all_case_ids
            for revision in list_revisions(self.output_folder, case_id)
        )
        yield from map(ground_truth_file_name, all_case_ids)
        kept_names = (result_file_name(doc_id), extraction_file_name(doc_id))
        yield from (kept_file_name(run, name) for run in self.run_names for name in kept_names)
        yield from (converted_file_name(doc_id), extraction_file_name(doc_id))
        yield from (result_file_name(doc_id), bundle_file_name(doc_id))
        if sha256 is not None:
            yield from self.template_review_files_by_sha256.get(sha256, ())

    def find_sha256(self, doc_id: str) -> str | None:
        """Find a document's SHA-256 in the index or in its files; None if unknown."""
        if (row := self.row_by_doc_id.get(doc_id)) and row["sha256"]:
            return str(row["sha256"])
        for name in (result_file_name(doc_id), extraction_file_name(doc_id), bundle_file_name(doc_id)):
            stored_sha256 = read_json_or_empty(self.output_folder, name).get("sha256")
            if isinstance(stored_sha256, str):
                return stored_sha256
        return None


def read_json_or_empty(output_folder: OutputFolder, name: str) -> Mapping[str, Any]:
    """Read a JSON file of any schema version; empty if the file cannot be read.

    `audit verify` reports files that cannot be read.
    """
    try:
        return output_folder.read_json(name, max_schema_version=_ANY_VERSION)
    except StoreError:
        return {}
