"""The result of a document: ``results/{doc_id}.json``."""

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
from evalkit.issue import Issue
from evalkit.llm.ledger import sum_usages
from evalkit.llm.model import Usage

SCHEMA_VERSION = 1


class Attempt(StrictRecord):
    """One round of verification."""

    attempt: int
    """0, 1 or 2."""
    decision: Decision
    decision_rule: str
    fingerprint: str
    """Hash of everything that a repair may change: seen twice, it is a cycle."""
    issues: tuple[str, ...]
    """The ids of the issues that were open."""
    repairs: tuple[Repair, ...] = ()
    """Repairs done before the next attempt."""
    normalised: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """In the first attempt: lossless changes to read the answers, by the agent that answered. Written only if
    something was."""


class UsageTotal(StrictRecord):
    """Cost of the model's answers, whenever it was paid.

    Equal answers of one document are counted once.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str | None = "0"
    """A decimal number as text; None if the price is unknown."""

    @classmethod
    def from_usages(cls, usages: Iterable[Usage]) -> UsageTotal:
        """All of them together."""
        total_usage = sum_usages(usages)
        return cls(
            calls=total_usage.calls,
            input_tokens=total_usage.input_tokens,
            output_tokens=total_usage.output_tokens,
            cost_usd=total_usage.cost_usd,
        )


class UsageReport(UsageTotal):
    """The total, and each agent's part."""

    by_agent: dict[str, UsageTotal] = {}


class Failure(StrictRecord):
    """Why a document could not be read."""

    code: str
    message: str
    remedy: str


class DocumentFailure(StrictRecord):
    """The result of an unreadable document."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    error: Failure
    sha256: str | None = None
    """None where not even the bytes could be had."""
    fingerprint: str | None = None
    times: Times = {}
    """The only clocks in this file."""


class DocumentResult(StrictRecord):
    """The result of a document that was read."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    sha256: str
    fingerprint: str
    """Hash of all that made this result: bytes, reader, models, prompts, tables, settings, a supplied classification."""
    decision: Decision
    """AUTO_ACCEPT or ESCALATE_TO_SME."""
    decision_rule: str
    """The arbiter's row ``1`` … ``8``, or ``retries`` or ``cycle``."""
    decision_reason: str
    classification: KeyedClassification | None
    """After the repairs; None where there was no usable answer."""
    issues: tuple[Issue, ...]
    """The last attempt's, and earlier ones that were repaired."""
    attempts: tuple[Attempt, ...]
    evidence_quality_score: float | None
    """1 − 0.30 / 0.15 / 0.05 per BLOCKER / MAJOR / MINOR of V4, at least 0; None where V4 could not answer."""
    grounded_ratio: float | None
    """Quotes found on their page / quotes claimed; None where none was claimed."""
    unanswered: tuple[str, ...] = ()
    """Verifiers that could not answer about it, also where ``on_agent_failure = "ignore"`` raises no issue for that."""
    usage: UsageReport
    model: str
    reader: str
    versions: dict[str, Any]
    times: Times
    """The only clocks in this file."""

    @property
    def open_issues(self) -> list[Issue]:
        """The issues that the arbiter counted last."""
        return [issue for issue in self.issues if issue.status == "open"]
