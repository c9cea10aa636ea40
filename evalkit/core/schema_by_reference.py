"""Compile a nested model's schema once instead of inlining it into each parent."""

from __future__ import annotations

from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


class SchemaByReference:
    """An annotation: ``Annotated[StatementTemplate, SchemaByReference()]``.

    Otherwise pydantic compiles the whole model into each model with such a field: each expert's kernel, of which there
    are many, would hold some ten of them, for cases that it never opens.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            source.model_validate,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda model: model.model_dump(mode="json")),
            metadata={"apart": source},
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema["metadata"]["apart"].__pydantic_core_schema__)
