"""Random selection of accepted documents for review: audits, and draws in addition.

Source: contract ruling 11. A document is selected for an audit if its hash, mixed with the seed, falls below the
probability; the selection does not depend on order, so that any run selects the same documents.

``draws/0001.json``, ``0002.json`` …: one draw each, changed only by a purge. A draw names every document that it could
have drawn: from then on each of them has a higher inclusion probability than its audit's, drawn or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from evalkit.core.records import StrictRecord
from evalkit.settings import Settings
from evalkit.store import (
    SAMPLE_DRAWS_FOLDER,
    OutputFolder,
    list_numbered_files_or_raise_on_gap,
    parse_stored_record,
    sample_draw_file_name,
)

SCHEMA_VERSION = 1


class Stratum(StrictRecord):
    """Documents with the same value of the field by which a draw was grouped."""

    value: str
    """The common value, such as ``Pathology Report``."""
    probability: dict[str, Annotated[float, Field(ge=0, le=1)]]
    """doc_id → the probability (0..1) that the document was selected by this draw, an earlier draw or an audit."""
    drawn: tuple[str, ...]
    """The documents that this draw put into the queue."""

    @model_validator(mode="after")
    def _check_drawn_documents(self) -> Self:
        if not self.probability.keys() >= set(self.drawn):
            raise ValueError("a drawn document has no probability")
        return self


class Draw(StrictRecord):
    """Record of one ``evalkit sample``: its strata and the documents it drew."""

    schema_version: int = SCHEMA_VERSION
    by: str
    """The field by which documents were grouped: ``production``, ``type`` or ``decision``."""
    drawn_at: str
    """The time of the draw (ISO 8601, UTC)."""
    strata: tuple[Stratum, ...]


def read_all_draws(output_folder: OutputFolder) -> list[Draw]:
    """Read all draws, oldest first. StoreError if a draw is damaged or missing."""
    # Without the missing draw, the probabilities of its documents would be too low.
    return [
        parse_stored_record(
            Draw,
            output_folder.read_json(file_name, max_schema_version=SCHEMA_VERSION),
            file_name,
            "Restore the file from a backup.",
        )
        for file_name in list_numbered_files_or_raise_on_gap(output_folder, SAMPLE_DRAWS_FOLDER, sample_draw_file_name)
    ]


def read_probability_by_eligible_doc_id(output_folder: OutputFolder) -> Mapping[str, float]:
    """Map the doc_id of each document that a draw could select to its probability."""
    return {
        doc_id: probability
        for draw in read_all_draws(output_folder)
        for stratum in draw.strata
        for doc_id, probability in stratum.probability.items()
    }


def read_probability_by_drawn_doc_id(output_folder: OutputFolder) -> Mapping[str, float]:
    """Map the doc_id of each drawn document to its probability."""
    return {
        doc_id: stratum.probability[doc_id]
        for draw in read_all_draws(output_folder)
        for stratum in draw.strata
        for doc_id in stratum.drawn
    }


def get_inclusion_probability(settings: Settings, completed_audit_count: int) -> float:
    """Return the probability (0..1) that an accepted document is audited.

    ``audit_rate_start`` until ``audit_target`` audits are completed, then ``audit_rate``.
    """
    return settings.audit_rate_start if completed_audit_count < settings.audit_target else settings.audit_rate


def is_drawn_for_audit(seed: str, document_sha256: str, probability: float) -> bool:
    """Return True if the document with this SHA-256 is selected for an audit."""
    hash_number = int(hashlib.sha256(f"{seed}{document_sha256}".encode()).hexdigest(), 16)
    return hash_number < probability * 2**256
