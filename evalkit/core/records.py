"""Base classes of validated records, and error texts that never quote the input."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class StrictRecord(BaseModel):
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
