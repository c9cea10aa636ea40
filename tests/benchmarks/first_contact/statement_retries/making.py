"""The record of a misread start."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from statements.drawn import Drawn

Plain = dict[str, Any]
"""A template as plain values."""


@dataclass(frozen=True)
class MisreadStart:
    """A statement, and how the first template misreads it."""

    name: str
    statement: str
    """A shape of ``statements.drawn`` or a small statement of the same half of ``statement_faults``."""
    spoil_template: Callable[[Plain, Drawn, random.Random], None]
    first_seed: int
    """The seeds differ from those of planted faults."""


def get_columns(plain: Plain) -> dict[str, Plain]:
    """Return the columns by their meaning."""
    return {column["name"]: column for column in plain["column"]}


def rename_columns(plain: Plain, **names: str) -> None:
    """Give columns other meanings."""
    for column in plain["column"]:
        column["name"] = names.get(column["name"], column["name"])
