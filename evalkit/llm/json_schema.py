"""JSON Schemas in the simple form that language models accept, without references.

Providers refuse rich schemas or become slow with them. Constraints left out of the schema are checked when the answer
is parsed.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from evalkit.document_types import cache_until_types_change

_SUPPORTED_KEYWORDS = ("type", "enum", "items", "properties", "required")


@cache_until_types_change
def build_inlined_json_schema(model_type: type[BaseModel]) -> Mapping[str, Any]:
    """Build the JSON Schema of a pydantic model, with references inlined.

    ValueError if the model contains itself, or a field has several types apart from null.

    >>> class Finding(BaseModel):
    ...     page: int | None = None
    >>> build_inlined_json_schema(Finding)
    {'type': 'object', 'properties': {'page': {'type': ['integer', 'null']}}, 'required': ['page']}
    """
    full_schema = model_type.model_json_schema()
    return _inline_references(full_schema, full_schema.get("$defs", {}), ())


def _inline_references(
    schema: dict[str, Any], definitions: dict[str, Any], ancestors: tuple[str, ...]
) -> dict[str, Any]:
    if reference := schema.get("$ref"):
        definition_name = reference.rpartition("/")[2]
        if definition_name in ancestors:
            raise ValueError(f"{definition_name} contains itself")
        return _inline_references(definitions[definition_name], definitions, (*ancestors, definition_name))
    if alternatives := schema.get("anyOf"):
        return _merge_nullable(
            [_inline_references(alternative, definitions, ancestors) for alternative in alternatives]
        )
    flat_schema = {key: schema[key] for key in _SUPPORTED_KEYWORDS if key in schema}
    if "items" in flat_schema:
        flat_schema["items"] = _inline_references(flat_schema["items"], definitions, ancestors)
    if "properties" in flat_schema:
        # Only fields are described: a class's docstring is about the program.
        flat_schema["properties"] = {
            key: _inline_references(subschema, definitions, ancestors)
            | ({"description": subschema["description"]} if "description" in subschema else {})
            for key, subschema in flat_schema["properties"].items()
        }
        # All fields are required, because a model may forget an optional field.
        flat_schema["required"] = list(flat_schema["properties"])
    return flat_schema


def _merge_nullable(alternatives: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the schema of a type with null. ValueError for other alternatives."""
    non_null_schemas = [alternative for alternative in alternatives if alternative["type"] != "null"]
    if len(non_null_schemas) != 1:
        raise ValueError("a field of an answer has one type, or that type and null")
    (non_null_schema,) = non_null_schemas
    if len(alternatives) > 1:
        non_null_schema |= {"type": [non_null_schema["type"], "null"]} | (
            {"enum": [*non_null_schema["enum"], None]} if "enum" in non_null_schema else {}
        )
    return non_null_schema
