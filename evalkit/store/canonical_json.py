"""Canonical JSON for hashes, and validation of stored records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evalkit.document_types import has_unknown_type_name
from evalkit.errors import StoreError


def encode_canonical_json(value: Any) -> bytes:
    """Encode a value as canonical JSON, for hashes: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def hash_canonical_json(value: Any) -> str:
    """Return the SHA-256 (hex) of a value's canonical JSON."""
    return hashlib.sha256(encode_canonical_json(value)).hexdigest()


class DuplicateKeyError(ValueError):
    """Error for a JSON object with a repeated key; its message names only the key."""


def build_dict_without_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict from pairs; DuplicateKeyError if a key occurs twice.

    For the ``object_pairs_hook`` of ``json.loads``.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise DuplicateKeyError("a key occurs twice in a JSON object")
    return fields


StoredModel = TypeVar("StoredModel", bound=BaseModel)


def parse_stored_record(
    record_type: type[StoredModel], stored_json: Mapping[str, Any], file_name: str, remedy: str
) -> StoredModel:
    """Validate a file's JSON as a record; StoreError with ``remedy`` if it is invalid.

    The error of an unknown document type does not name the type: in a damaged file the name may be a patient's.
    """
    try:
        return record_type.model_validate(stored_json)
    except ValidationError as error:
        if has_unknown_type_name(error):
            raise StoreError(
                f"{file_name} contains a document type that the types file does not define",
                code="TYPES-MISSING",
                remedy="Add the type to the types file again, name this file in the setting types_file, and run again.",
            ) from None
        # Without the cause: pydantic's message would quote the patient's document.
        raise StoreError(
            f"{file_name} lacks fields that such a file must have, or has invalid ones",
            code="STORE-TORN",
            remedy=remedy,
        ) from None
