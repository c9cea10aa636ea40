"""Annotation by which a nested model's schema is compiled once, not per parent."""

from __future__ import annotations

from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


class SchemaByReference:
    """Annotation for a field whose model's schema is compiled once, not per parent.

    Use it as ``Annotated[StatementTemplate, SchemaByReference()]``. Without it, pydantic compiles the whole model into
    each model that has such a field: the kernel of each expert would hold some ten copies, for cases that the expert
    never opens.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            source.model_validate,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda model: model.model_dump(mode="json")),
            metadata={"apart": source},
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema["metadata"]["apart"].__pydantic_core_schema__)
