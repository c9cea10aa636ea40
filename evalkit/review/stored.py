"""Results, fields and bundles from their files; what is wrong with a file is said without quoting it."""

from __future__ import annotations

from pydantic_core import from_json

from evalkit.classification.result import SCHEMA_VERSION, DocumentFailure, DocumentResult
from evalkit.documents.bundle import SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.bundle import DocumentBundle, packed
from evalkit.errors import StoreError
from evalkit.extraction.schema import SCHEMA_VERSION as EXTRACTIONS_VERSION
from evalkit.extraction.schema import Extractions
from evalkit.store import Files, bundle_name, extraction_name, result_name, shaped

_HEAD = 8192
"""Bytes, about twice as many as the longest path has."""
_REMEDY = "Run the document with --fresh."


def read_result(files: Files, doc_id: str) -> DocumentResult | DocumentFailure:
    """What was decided about a document, or why it was not read. NotFound; StoreError for a damaged file."""
    name = result_name(doc_id)
    stored = files.read(name, schema_version=SCHEMA_VERSION)
    if "error" in stored:
        return shaped(DocumentFailure, stored, name, _REMEDY)
    return shaped(DocumentResult, stored, name, _REMEDY)


def read_extractions(files: Files, doc_id: str) -> Extractions:
    """The fields that were extracted from a document. NotFound; StoreError for a damaged file."""
    name = extraction_name(doc_id)
    stored = files.read(name, schema_version=EXTRACTIONS_VERSION)
    return shaped(Extractions, stored, name, "Extract the document with --fresh.")


def read_file_path(files: Files, doc_id: str) -> str:
    """Where a document was read from. NotFound; StoreError for a damaged file.

    It stands at the beginning of the bundle, before the pages: these, which are nearly all of it, are not looked at.
    """
    name = bundle_name(doc_id)
    try:
        found = from_json(files.raw(name, _HEAD), allow_partial=True)["file_path"]
    except (ValueError, TypeError, LookupError):
        found = files.read(name, schema_version=BUNDLE_VERSION).get("file_path")
    if not isinstance(found, str):
        raise StoreError(f"{name} does not have the shape of its kind", code="STORE-TORN", remedy=_REMEDY)
    return found


def read_bundle(files: Files, doc_id: str) -> DocumentBundle:
    """What stands in a document. NotFound; StoreError for a damaged file."""
    name = bundle_name(doc_id)
    return shaped(DocumentBundle, files.read(name, schema_version=BUNDLE_VERSION, each=packed), name, _REMEDY)
