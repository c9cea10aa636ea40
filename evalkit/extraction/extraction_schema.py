"""Records of ``extractions/{doc_id}.json``: fields with their places on the page."""

from __future__ import annotations

from enum import StrEnum
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import Field

from evalkit.core.records import StrictRecord
from evalkit.core.timings import Times
from evalkit.issue import Issue, PageBox

SCHEMA_VERSION = 1

#: Reasons without a decision: the template asks for nothing but the text; the document's type is not known yet.
NO_FIELDS, NO_TYPE = "no_fields", "no_type"

_UnitInterval = Annotated[float, Field(ge=0, le=1)]


class FieldStatus(StrEnum):
    """Presence of a field in the document."""

    FOUND = "found"
    NOT_PRESENT = "not_present"
    """The document has no value for the field."""
    AMBIGUOUS = "ambiguous"
    """The document may have a value, but it is unclear: a person must decide."""


class FieldPlace(StrictRecord):
    """A place in the document that states another value for a field."""

    value: str
    """The value in normal form."""
    raw: str
    """The value as the page writes it."""
    page: int
    """Page of the value, from 1."""
    quote: str
    """The text around the value on the page, including the value."""
    boxes: tuple[PageBox, ...] = ()
    """The rectangles of ``raw``, each with its page."""


class FieldValue(StrictRecord):
    """A field's value in the document; ``found`` only if it appears on the page."""

    status: FieldStatus
    value: str | None = None
    """The value in normal form: ``1234.50``, ``2025-02-01``, ``12-3456789``. None unless found or ambiguous."""
    candidates: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Readings of an ambiguous value, ``value`` first: by OCR, or by several places of the document."""
    places: tuple[FieldPlace, ...] = Field(default=(), exclude_if=not_)
    """Every place of the document with another value, in reading order; also of a corrected value."""
    raw: str | None = None
    """The value as the page writes it."""
    page: int | None = None
    """Page of the value, from 1."""
    quote: str | None = None
    """The text around the value on the page, including the value."""
    boxes: tuple[PageBox, ...] = ()
    """The rectangles of ``raw``, each with its page; one for each line."""
    confidence: _UnitInterval = 0.0
    """The extractor's confidence, 0..1."""

    @property
    def is_found(self) -> bool:
        """True if the value appears on the page."""
        return self.status is FieldStatus.FOUND


#: The value of a field that the document does not have.
NOT_PRESENT_VALUE = FieldValue(status=FieldStatus.NOT_PRESENT)


class IterationRecord(StrictRecord):
    """One attempt to extract the fields, with its score and feedback."""

    iteration: int
    """Number of the attempt, from 1."""
    template: str
    """Name of the template that was filled in; attempts at one form may try different templates."""
    score: _UnitInterval | None
    """Score of the attempt, 0..1; None if the evaluating model could not answer."""
    scores: dict[str, float] = {}
    """The parts of the score by name: ``completeness``, ``accuracy`` …"""
    improvement: float | None = None
    """Score minus the score of the attempt before; None for the first attempt or without scores."""
    confidence: _UnitInterval = 0.0
    """For reports, the score; for forms, the extractor's confidence."""
    feedback: str = ""
    """Feedback on this attempt, as the next attempt gets it; may be empty for the last attempt."""
    reasoning: str = ""
    """The extractor's explanation of its answer."""
    issues: tuple[str, ...] = ()
    """For reports, ids of ``Extraction.issues``; for forms, texts of issues and failure reasons."""
    fields: dict[str, FieldValue] = {}
    normalised: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Lossless changes made to read the models' answers, each with its role; left out if empty."""


class Extraction(StrictRecord):
    """The fields of one report or form within the document."""

    template: str
    document_type: str
    """The clinical document type, or the form: ``W-2``."""
    start_page: int
    end_page: int
    """Last page, inclusive."""
    score: _UnitInterval | None
    """Score of the best attempt, 0..1 (for forms, points / 100); None if a model could not answer."""
    confidence: _UnitInterval
    """For reports, the score; for forms, the grader's confidence."""
    met_threshold: bool
    """True if the score met the threshold (reports) or the grader passed the form."""
    stopped_reason: str
    """The reason why no further attempt was made, in a few words."""
    iterations: int
    history: tuple[IterationRecord, ...] = ()
    issues: tuple[Issue, ...] = ()
    decision: Literal["AUTO_ACCEPT", "ESCALATE_TO_SME"] | None
    """None if there is nothing to judge: no case, no ground truth; ``stopped_reason`` is ``no_fields`` or ``no_type``."""
    fields: dict[str, FieldValue]
    """Fields of the best attempt by name, in the template's order."""


class Extractions(StrictRecord):
    """All extractions of one document, stored as ``extractions/{doc_id}.json``."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    sha256: str
    """Hash of the PDF's bytes."""
    fingerprint: str
    """Hash of everything that determines the result: PDF, reader, models, prompts, templates, settings."""
    extractions: tuple[Extraction, ...]
    """Extractions in page order."""
    usage: dict[str, Any] = {}
    """Cost of the models' answers, in the same form as in the classification result."""
    model: str
    reader: str
    times: Times = {}
    """Start, end and duration of the run; no other field depends on the clock."""
