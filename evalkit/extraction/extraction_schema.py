"""The file ``extractions/{doc_id}.json``: extracted fields, each with its proof."""

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
    """Presence of a field in the document."""

    FOUND = "found"
    NOT_PRESENT = "not_present"
    """The document does not mention it; no need to look again."""
    AMBIGUOUS = "ambiguous"
    """Something is there, but its meaning is unclear: for a person."""


class FieldValue(StrictRecord):
    """A field's value in the document; ``found`` only if it appears on the page."""

    status: FieldStatus
    value: str | None = None
    """Normalised: ``1234.50``, ``2025-02-01``, ``12-3456789``. None unless found or ambiguous."""
    raw: str | None = None
    """The value as the page writes it."""
    page: int | None = None
    """From 1."""
    quote: str | None = None
    """The passage around the value, which shows its context."""
    boxes: tuple[PageBox, ...] = ()
    """The rectangles of ``raw``, one per line."""
    confidence: _UnitInterval = 0.0
    """The extractor's confidence, 0..1."""

    @property
    def is_found(self) -> bool:
        """True if the value appears on the page."""
        return self.status is FieldStatus.FOUND


#: A field that the document does not have.
NOT_PRESENT_VALUE = FieldValue(status=FieldStatus.NOT_PRESENT)


class IterationRecord(StrictRecord):
    """One attempt of the loop."""

    iteration: int
    """From 1."""
    template: str
    """The template that was filled in; for forms, the type that this attempt assumed."""
    score: _UnitInterval | None
    """As ``Extraction.score``; None if the judge could not answer."""
    scores: dict[str, float] = {}
    """The parts of the score by name: ``completeness``, ``accuracy`` …"""
    improvement: float | None = None
    """Compared with the attempt before."""
    confidence: _UnitInterval = 0.0
    feedback: str = ""
    """Feedback for the next attempt; empty after the last one."""
    reasoning: str = ""
    """The extractor's own explanation."""
    issues: tuple[str, ...] = ()
    """Ids of issues."""
    fields: dict[str, FieldValue] = {}


class Extraction(StrictRecord):
    """The fields of one report or form within the document."""

    template: str
    document_type: str
    """The clinical document type, or the form: ``W-2``."""
    start_page: int
    end_page: int
    """Inclusive."""
    score: _UnitInterval | None
    """0..1 (specification 003's points / 100); None if the judge could not answer."""
    confidence: _UnitInterval
    met_threshold: bool
    stopped_reason: str
    """The reason why the loop ended, in one sentence."""
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
    """Hash of the PDF's bytes."""
    fingerprint: str
    """Hash of everything that determines the result: bytes, reader, models, prompts, templates, settings."""
    extractions: tuple[Extraction, ...]
    """In the order of their pages."""
    usage: dict[str, Any] = {}
    """Cost of the model's answers, as in results."""
    model: str
    reader: str
    times: Times = {}
    """The only clocks in this file."""
