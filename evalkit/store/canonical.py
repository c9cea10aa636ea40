"""The one text of a JSON value, its hash, and its shape."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evalkit.errors import StoreError


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8. Hashes are taken of it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


class RepeatedField(ValueError):
    """A JSON object has a field twice."""


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's fields, for ``json.loads``. RepeatedField where one is there twice: nobody knows which one is meant."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise RepeatedField("a field is there twice")
    return fields


M = TypeVar("M", bound=BaseModel)


def shaped(model: type[M], stored: Mapping[str, Any], name: str, remedy: str) -> M:
    """What a file holds, as its model. StoreError that names the file, with this remedy, where it has another shape."""
    try:
        return model.model_validate(stored)
    except ValidationError:
        # Without the cause: pydantic's message would quote the patient's document.
        raise StoreError(f"{name} does not have the shape of its kind", code="STORE-TORN", remedy=remedy) from None
