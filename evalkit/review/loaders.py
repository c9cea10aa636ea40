"""Results, fields and bundles from their files; errors never quote a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic_core import from_json

from evalkit.classification.document_result import SCHEMA_VERSION, DocumentFailure, DocumentResult
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.bundle import DocumentBundle, compact_page_json_in_place
from evalkit.errors import StoreError
from evalkit.extraction.extraction_schema import SCHEMA_VERSION as EXTRACTIONS_VERSION
from evalkit.extraction.extraction_schema import Extractions
from evalkit.store import (
    OutputFolder,
    bundle_file_name,
    extraction_file_name,
    parse_stored_record,
    result_file_name,
)

T = TypeVar("T")

_HEAD_BYTES = 8192
"""Bytes, about twice as many as the longest path has."""
_REMEDY = "Run the document with --fresh."


def read_result(output_folder: OutputFolder, doc_id: str) -> DocumentResult | DocumentFailure:
    """Read what was decided about a document, or why it was not read.

    NotFound; StoreError.
    """
    name = result_file_name(doc_id)
    stored = output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
    if "error" in stored:
        return parse_stored_record(DocumentFailure, stored, name, _REMEDY)
    return parse_stored_record(DocumentResult, stored, name, _REMEDY)


def read_extractions(output_folder: OutputFolder, doc_id: str) -> Extractions:
    """Read the fields that were extracted from a document. NotFound; StoreError."""
    name = extraction_file_name(doc_id)
    stored = output_folder.read_json(name, max_schema_version=EXTRACTIONS_VERSION)
    return parse_stored_record(Extractions, stored, name, "Extract the document with --fresh.")


def read_source_file_path(output_folder: OutputFolder, doc_id: str) -> str:
    """Read the path of a document's source file.

    NotFound; StoreError for a damaged file. It is at the beginning of the bundle, before the pages, which are
    nearly all of it and are not parsed.
    """
    name = bundle_file_name(doc_id)
    try:
        file_path = from_json(output_folder.read_bytes(name, _HEAD_BYTES), allow_partial=True)["file_path"]
    except (ValueError, TypeError, LookupError):
        file_path = output_folder.read_json(name, max_schema_version=BUNDLE_VERSION).get("file_path")
    if not isinstance(file_path, str):
        raise StoreError(f"{name} does not have the shape of its kind", code="STORE-TORN", remedy=_REMEDY)
    return file_path


def read_bundle(output_folder: OutputFolder, doc_id: str) -> DocumentBundle:
    """Read the text of a document. NotFound; StoreError for a damaged file."""
    name = bundle_file_name(doc_id)
    return parse_stored_record(
        DocumentBundle,
        output_folder.read_json(name, max_schema_version=BUNDLE_VERSION, object_hook=compact_page_json_in_place),
        name,
        _REMEDY,
    )


def load_if_intact(read_file: Callable[[OutputFolder, str], T], output_folder: OutputFolder, doc_id: str) -> T | None:
    """Load what an earlier run left.

    None if it is missing or torn and can be made again. StoreError if a newer evalkit wrote it: that is never
    overwritten.
    """
    try:
        return read_file(output_folder, doc_id)
    except StoreError as error:
        if error.code == "STORE-NEWER":
            raise
        return None
