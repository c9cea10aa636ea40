"""What is extracted from a document, with the proof of every value: ``extractions/{doc_id}.json``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from evalkit.core.records import StrictRecord
from evalkit.core.timings import Times
from evalkit.issue import Issue, PageBox

SCHEMA_VERSION = 1

_UnitInterval = Annotated[float, Field(ge=0, le=1)]


class FieldStatus(StrEnum):
    """Whether the document has a field."""

    FOUND = "found"
    NOT_PRESENT = "not_present"
    """The document does not say it. Nobody has to look for it again."""
    AMBIGUOUS = "ambiguous"
    """It says something, but what cannot be told: for a person."""


class FieldValue(StrictRecord):
    """What the document says in one field. Only a value that stands on the page is ``found``."""

    status: FieldStatus
    value: str | None = None
    """Normalised: ``1234.50``, ``2025-02-01``, ``12-3456789``. None unless found, or an ambiguous reading."""
    raw: str | None = None
    """The value's own words as the page writes them."""
    page: int | None = None
    """From 1."""
    quote: str | None = None
    """The passage of the page's text around the value that shows what it belongs to."""
    boxes: tuple[PageBox, ...] = ()
    """The rectangles of ``raw``, one per line."""
    confidence: _UnitInterval = 0.0
    """How sure the extractor is, 0..1."""

    @property
    def is_found(self) -> bool:
        """Whether there is a value that stands on the page."""
        return self.status is FieldStatus.FOUND


#: A field that the document does not have.
NOT_PRESENT_VALUE = FieldValue(status=FieldStatus.NOT_PRESENT)


class IterationRecord(StrictRecord):
    """One attempt of the loop."""

    iteration: int
    """From 1."""
    template: str
    """The template that was filled in: of forms, the type that this attempt took it for."""
    score: _UnitInterval | None
    """As ``Extraction.score``; None where the judge could not judge."""
    scores: dict[str, float] = {}
    """The parts of the score by name: ``completeness``, ``accuracy`` …"""
    improvement: float | None = None
    """Over the attempt before."""
    confidence: _UnitInterval = 0.0
    feedback: str = ""
    """What the next attempt was told; empty after the last one."""
    reasoning: str = ""
    """Why the extractor answered as it did."""
    issues: tuple[str, ...] = ()
    """Ids of issues."""
    fields: dict[str, FieldValue] = {}


class Extraction(StrictRecord):
    """The fields of one report or form within the document."""

    template: str
    """Name of the template."""
    document_type: str
    """The clinical document type, or the form: ``W-2``."""
    start_page: int
    end_page: int
    """Inclusive."""
    score: _UnitInterval | None
    """0..1 (specification 003's points / 100); None where the judge could not judge."""
    confidence: _UnitInterval
    met_threshold: bool
    stopped_reason: str
    """Why the loop ended, in a sentence."""
    iterations: int
    history: tuple[IterationRecord, ...] = ()
    issues: tuple[Issue, ...] = ()
    decision: Literal["AUTO_ACCEPT", "ESCALATE_TO_SME"]
    fields: dict[str, FieldValue]
    """By name, in the template's order."""


class Extractions(StrictRecord):
    """``extractions/{doc_id}.json``."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    sha256: str
    """Of the PDF's bytes."""
    fingerprint: str
    """Of all that made it: bytes, reader, models, prompts, templates, settings."""
    extractions: tuple[Extraction, ...]
    """In the order of their pages."""
    usage: dict[str, Any] = {}
    """What the model's answers cost, as in results."""
    model: str
    reader: str
    times: Times = {}
    """The only clocks in this file."""
