"""JSON Schemas as language models take them: flat, without references, bounds and defaults.

What a schema does not say is checked when the answer is read: providers refuse, or get slow and odd with, rich ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

_KEPT = ("type", "enum", "items", "properties", "required")


@cache
def lean_schema(model: type[BaseModel]) -> Mapping[str, Any]:
    """The schema of ``model`` with references put in their places. ValueError where it has itself as a part.

    >>> class Finding(BaseModel):
    ...     page: int | None = None
    >>> lean_schema(Finding)
    {'type': 'object', 'properties': {'page': {'type': ['integer', 'null']}}, 'required': ['page']}
    """
    whole = model.model_json_schema()
    return _lean(whole, whole.get("$defs", {}), ())


def _lean(schema: dict[str, Any], named: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        if name in above:
            raise ValueError(f"{name} has itself as a part")
        return _lean(named[name], named, (*above, name))
    if options := schema.get("anyOf"):
        return _either([_lean(option, named, above) for option in options])
    lean = {key: schema[key] for key in _KEPT if key in schema}
    if "items" in lean:
        lean["items"] = _lean(lean["items"], named, above)
    if "properties" in lean:
        lean["properties"] = {key: _lean(value, named, above) for key, value in lean["properties"].items()}
        # A field that may be left out is left out, and nobody knows whether it was meant.
        lean["required"] = list(lean["properties"])
    return lean


def _either(options: list[dict[str, Any]]) -> dict[str, Any]:
    """One of two where the other is null; anything richer has no place in an answer."""
    kinds = [option for option in options if option["type"] != "null"]
    if len(kinds) != 1:
        raise ValueError("a field of an answer has one type, or that or null")
    (kind,) = kinds
    if len(options) > 1:
        kind |= {"type": [kind["type"], "null"]} | ({"enum": [*kind["enum"], None]} if "enum" in kind else {})
    return kind
