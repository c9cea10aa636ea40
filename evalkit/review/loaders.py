"""Loading of results, fields and document texts; errors never quote a file."""

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

#: The number of bytes at the start of a bundle that contain its file path: about twice the longest path.
_HEAD_BYTES = 8192
_REMEDY = "Run the document with --fresh."


def read_result(output_folder: OutputFolder, doc_id: str) -> DocumentResult | DocumentFailure:
    """Read a document's result, or the record of its failure.

    NotFound if the document was never run; StoreError if the file is damaged.
    """
    name = result_file_name(doc_id)
    stored = output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
    record_type: type[DocumentResult | DocumentFailure] = DocumentFailure if "error" in stored else DocumentResult
    return require_own_id(parse_stored_record(record_type, stored, name, _REMEDY), "doc_id", doc_id, name)


def read_extractions(output_folder: OutputFolder, doc_id: str) -> Extractions:
    """Read the fields extracted from a document. NotFound; StoreError if damaged."""
    name = extraction_file_name(doc_id)
    stored = output_folder.read_json(name, max_schema_version=EXTRACTIONS_VERSION)
    fields = parse_stored_record(Extractions, stored, name, "Extract the document with --fresh.")
    return require_own_id(fields, "doc_id", doc_id, name)


def read_source_file_path(output_folder: OutputFolder, doc_id: str) -> str:
    """Read the path of the file from which a document was read.

    Only the beginning of the bundle is parsed, where the path is; the pages after it make up nearly the whole file. NotFound
    if there is no bundle; StoreError if it is damaged.
    """
    name = bundle_file_name(doc_id)
    try:
        file_path = from_json(output_folder.read_bytes(name, _HEAD_BYTES), allow_partial=True)["file_path"]
    except (ValueError, TypeError, LookupError):
        file_path = output_folder.read_json(name, max_schema_version=BUNDLE_VERSION).get("file_path")
    if not isinstance(file_path, str):
        raise StoreError(
            f"{name} is damaged: its field file_path is missing or is not a string", code="STORE-TORN", remedy=_REMEDY
        )
    return file_path


def read_bundle(output_folder: OutputFolder, doc_id: str) -> DocumentBundle:
    """Read a document's pages and their text. NotFound; StoreError if damaged."""
    name = bundle_file_name(doc_id)
    stored = output_folder.read_json(name, max_schema_version=BUNDLE_VERSION, object_hook=compact_page_json_in_place)
    return require_own_id(parse_stored_record(DocumentBundle, stored, name, _REMEDY), "doc_id", doc_id, name)


def require_own_id(record: T, id_name: str, expected_id: str, file_name: str) -> T:
    """Return the record. StoreError if it belongs to another id than the file name."""
    if getattr(record, id_name) == expected_id:
        return record
    raise StoreError(
        f"{file_name} is a copy of another file: the {id_name} in it differs from the file's name",
        code="STORE-TORN",
        remedy="Move the file out of the output folder, and restore the right file from a backup or run the document again.",
    )


def load_if_intact(read_file: Callable[[OutputFolder, str], T], output_folder: OutputFolder, doc_id: str) -> T | None:
    """Load an earlier run's file with ``read_file``; None if missing or damaged.

    The caller may then rebuild the file. StoreError if a newer evalkit wrote the file, because it must not be overwritten.
    """
    try:
        return read_file(output_folder, doc_id)
    except StoreError as error:
        if error.code == "STORE-NEWER":
            raise
        return None
