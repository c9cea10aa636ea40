"""Base classes of validated records, and error texts that never quote the input.

:class:`SchemaByReference` compiles a nested model's schema once instead of into every parent.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


class DiscreetModel(BaseModel):
    """Base model whose validation errors never quote the input (patient data)."""

    model_config = ConfigDict(hide_input_in_errors=True)


class StrictRecord(DiscreetModel):
    """Immutable validated record that rejects unknown fields, NaN and infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LazyStrictRecord(StrictRecord):
    """``StrictRecord`` that is compiled on first use, because few commands need it."""

    model_config = ConfigDict(defer_build=True)


def describe_first_error(error: ValidationError, *location: str) -> str:
    """Describe the first validation error as ``path: problem``.

    The path begins with ``location``. The input is never quoted, because it may be a patient's.
    """
    first_error = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(map(str, [*location, *first_error["loc"]]))
    return ": ".join(filter(None, (path, first_error["msg"].removeprefix("Value error, "))))


def describe_first_row_error(error: ValidationError, validated_input: Any) -> str:
    """Describe the first validation error as ``table → 3 (row-id) → key: problem``.

    The row's id or name comes from ``validated_input``.
    """
    first_error = error.errors(include_url=False, include_input=False)[0]
    steps, node = [], validated_input
    for step in first_error["loc"]:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            node = None
        row_id = node.get("id") or node.get("name") if isinstance(node, dict) else None
        steps.append(f"{step} ({row_id})" if row_id else str(step))
    return ": ".join(filter(None, (" → ".join(steps), first_error["msg"].removeprefix("Value error, "))))


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
