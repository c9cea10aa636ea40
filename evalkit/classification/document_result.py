"""Result of one processed document, as stored in ``results/{doc_id}.json``."""

from __future__ import annotations

from collections.abc import Iterable
from operator import not_
from typing import Any

from pydantic import Field

from evalkit.classification.autofix import Repair
from evalkit.classification.patient_keys import KeyedClassification
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.records import StrictRecord
from evalkit.core.timings import Times
from evalkit.documents.file_properties import FileProperties
from evalkit.issue import Issue
from evalkit.llm.ledger import sum_usages
from evalkit.llm.model import Usage

SCHEMA_VERSION = 1


class Attempt(StrictRecord):
    """One round of checks on a document's classification, and the repairs after it."""

    attempt: int
    """Number of the round: 0, 1 or 2."""
    decision: Decision
    decision_rule: str
    fingerprint: str
    """Hash of the answer's parts that a repair may change; a hash that was seen before means a cycle."""
    issues: tuple[str, ...]
    """Ids of the issues that were open in this round."""
    repairs: tuple[Repair, ...] = ()
    """Repairs applied before the next round."""
    normalised: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Lossless changes made to read the models' answers, each with its agent. Only in the first attempt, and left out
    if empty."""


class UsageTotal(StrictRecord):
    """Sum of the tokens and cost of the models' answers about a document.

    Answers from the cache are included; equal answers about one document are counted once.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str | None = "0"
    """Cost in US dollars, a decimal number as text; None if a price is unknown."""

    @classmethod
    def from_usages(cls, usages: Iterable[Usage]) -> UsageTotal:
        """Add up the usages of several answers."""
        return cls.model_validate(sum_usages(usages), from_attributes=True)


class UsageReport(UsageTotal):
    """Usage of models for a document: the total, and the part of each agent."""

    by_agent: dict[str, UsageTotal] = {}


class Failure(StrictRecord):
    """Error that stopped the processing of a document."""

    code: str
    message: str
    remedy: str


class DocumentFailure(StrictRecord):
    """Stored result of a document that could not be read."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    error: Failure
    sha256: str | None = None
    """Hash of the file's bytes; None if the file could not be opened."""
    fingerprint: str | None = None
    times: Times = {}
    """Times of processing; no other field depends on the clock."""


class DocumentResult(StrictRecord):
    """Stored result of a document that was read, classified and verified."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    sha256: str
    fingerprint: str
    """Hash of all inputs of this result: file, reader, models, prompts, tables, settings, supplied classification."""
    decision: Decision
    """Final decision: AUTO_ACCEPT or ESCALATE_TO_SME."""
    decision_rule: str
    """Row of the arbiter's table that decided, ``1`` to ``8``; or ``retries`` or ``cycle``."""
    decision_reason: str
    classification: KeyedClassification | None
    """Classification after the repairs; None if there was no usable answer."""
    issues: tuple[Issue, ...]
    """Issues of the last attempt, and repaired issues of earlier attempts."""
    attempts: tuple[Attempt, ...]
    evidence_quality_score: float | None
    """1 − 0.30 / 0.15 / 0.05 per open BLOCKER / MAJOR / MINOR of V4, at least 0; None if nothing was judged."""
    grounded_ratio: float | None
    """Share of the claimed quotes that are on the claimed page; None if nothing was quoted."""
    unanswered: tuple[str, ...] = ()
    """Verifiers that failed on this document, including failures that ``on_agent_failure = "ignore"`` leaves out."""
    usage: UsageReport
    model: str
    reader: str
    versions: dict[str, Any]
    properties: FileProperties | None = Field(default=None, exclude_if=not_)
    """Properties of the file as a whole; None if an older version wrote the result."""
    times: Times
    """Times of processing; no other field depends on the clock."""

    @property
    def open_issues(self) -> list[Issue]:
        """Issues that are still open, as counted in the last decision."""
        return [issue for issue in self.issues if issue.status == "open"]
