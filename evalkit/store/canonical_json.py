"""The one text of a JSON value, its hash, and its shape."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evalkit.errors import StoreError


def encode_canonical_json(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8. Hashes are taken of it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def hash_canonical_json(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON."""
    return hashlib.sha256(encode_canonical_json(value)).hexdigest()


class DuplicateKeyError(ValueError):
    """A JSON object has a field twice."""


def build_dict_without_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's fields, for ``json.loads``. DuplicateKeyError where one is there twice: nobody knows which one is meant."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise DuplicateKeyError("a field is there twice")
    return fields


StoredModel = TypeVar("StoredModel", bound=BaseModel)


def parse_stored_record(
    record_type: type[StoredModel], stored_json: Mapping[str, Any], file_name: str, remedy: str
) -> StoredModel:
    """What a file holds, as its model. StoreError that names the file, with this remedy, where it has another shape."""
    try:
        return record_type.model_validate(stored_json)
    except ValidationError:
        # Without the cause: pydantic's message would quote the patient's document.
        raise StoreError(f"{file_name} does not have the shape of its kind", code="STORE-TORN", remedy=remedy) from None
