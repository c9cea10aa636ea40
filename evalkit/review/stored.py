"""Results and bundles from their files; what is wrong with a file is said without quoting it."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evalkit.classification.result import SCHEMA_VERSION, DocumentFailure, DocumentResult
from evalkit.documents.bundle import SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.bundle import DocumentBundle, packed
from evalkit.errors import StoreError
from evalkit.store import Files, bundle_name, result_name

M = TypeVar("M", bound=BaseModel)


def read_result(files: Files, doc_id: str) -> DocumentResult | DocumentFailure:
    """What was decided about a document, or why it was not read. NotFound; StoreError for a damaged file."""
    name = result_name(doc_id)
    stored = files.read(name, schema_version=SCHEMA_VERSION)
    if "error" in stored:
        return _shaped(DocumentFailure, stored, name)
    return _shaped(DocumentResult, stored, name)


def read_bundle(files: Files, doc_id: str) -> DocumentBundle:
    """What stands in a document. NotFound; StoreError for a damaged file."""
    name = bundle_name(doc_id)
    return _shaped(DocumentBundle, files.read(name, schema_version=BUNDLE_VERSION, each=packed), name)


def _shaped(model: type[M], stored: dict[str, Any], name: str) -> M:
    try:
        return model.model_validate(stored)
    except ValidationError:
        # Without the cause: pydantic's message would quote the patient's document.
        raise StoreError(
            f"{name} does not have the shape of its kind", code="STORE-TORN", remedy="Run the document with --fresh."
        ) from None
