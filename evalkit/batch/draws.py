"""Which accepted documents were drawn for review besides the audits, and with what probability.

``draws/0001.json``, ``0002.json`` …: one draw each, never changed. A draw names every document that it could have
drawn, because each of them is from then on looked at with a higher probability than its audit's, drawn or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from evalkit.frozen import Frozen
from evalkit.store import DRAWS, Files, draw_name, shaped

SCHEMA_VERSION = 1


class Stratum(Frozen):
    """The documents of one value of the field that was drawn by."""

    value: str
    """What they have in common, ``Pathology Report``."""
    probability: dict[str, Annotated[float, Field(ge=0, le=1)]]
    """doc_id → with which it has been or could have been drawn until now, 0..1, audits included."""
    drawn: tuple[str, ...]
    """The documents that this draw put into the queue."""

    @model_validator(mode="after")
    def _drawn_could_be(self) -> Self:
        if not self.probability.keys() >= set(self.drawn):
            raise ValueError("a document was drawn that could not be")
        return self


class Draw(Frozen):
    """One ``evalkit sample``."""

    schema_version: int = SCHEMA_VERSION
    by: str
    """The field: ``production``, ``type`` or ``decision``."""
    drawn_at: str
    """When (ISO 8601, UTC)."""
    strata: tuple[Stratum, ...]


def draws(files: Files) -> list[Draw]:
    """All draws, oldest first. StoreError for a damaged file, for one that is lost, and for one that is none."""
    # Without one of them every document that it could have drawn would be taken for rarer than it is.
    return [
        shaped(Draw, files.read(name, schema_version=SCHEMA_VERSION), name, "Restore it from a backup.")
        for name in files.numbered(DRAWS, draw_name)
    ]


def read_draws(files: Files) -> Mapping[str, float]:
    """doc_id → the probability that the draws have given it; documents that could not be drawn are not in it."""
    return {name: share for draw in draws(files) for one in draw.strata for name, share in one.probability.items()}


def sampled(files: Files) -> Mapping[str, float]:
    """The documents that a draw put into the queue, with the probability that it gave them."""
    return {name: one.probability[name] for draw in draws(files) for one in draw.strata for name in one.drawn}
