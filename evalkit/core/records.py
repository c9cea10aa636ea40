"""Base classes of checked records, and errors that do not quote their input."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class StrictRecord(BaseModel):
    """A checked record: frozen, without unknown fields, NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LazyStrictRecord(StrictRecord):
    """A record compiled on first use, which most commands do without."""

    model_config = ConfigDict(defer_build=True)


def describe_first_error(error: ValidationError, *location: str) -> str:
    """Describe the first error as ``path: problem``, below ``location``.

    Never quotes the input: it may be a patient's.
    """
    first_error = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(map(str, [*location, *first_error["loc"]]))
    return ": ".join(filter(None, (path, first_error["msg"].removeprefix("Value error, "))))


def describe_first_row_error(error: ValidationError, validated_input: Any) -> str:
    """Describe the first error as ``table → 3 (row-id) → key: problem``."""
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
