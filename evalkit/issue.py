"""Issues: findings of all checks, for people and for the arbiter's decision.

An issue is frozen; numbering or a new status makes a new object. ``Issue(**json)`` restores a stored issue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from evalkit.core.records import DiscreetModel

ShippedAgent = Literal[
    "V1", "V2", "V3", "V4", "classifier", "reader", "extractor", "evaluator", "grader",
    "layout_geometry", "semantic_financial", "arbitrator",
]  # fmt: skip
#: Agent name of a site's own verifier: 2 to 16 capitals and digits, beginning with a capital.
OwnAgent = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9]{1,15}$")]
Agent = ShippedAgent | OwnAgent

OWN_AGENT_GROUP = "IG-4"
#: Issue group of each agent: IG-1 structure, IG-2 consistency, IG-3 evidence, IG-4 domain traps and a site's verifiers.
ISSUE_GROUP_BY_AGENT: dict[str, str] = {
    "V1": "IG-1",
    "V2": "IG-2",
    "V3": "IG-4",
    "V4": "IG-3",
    "classifier": "IG-1",
    "reader": "IG-1",
    "extractor": "IG-3",
    "evaluator": "IG-2",
    "grader": "IG-2",
    "layout_geometry": "IG-1",
    "semantic_financial": "IG-2",
    "arbitrator": "IG-2",
}


class IssueSeverity(StrEnum):
    """Severity of an issue, the worst first."""

    BLOCKER = "BLOCKER"
    MAJOR = "MAJOR"
    MINOR = "MINOR"

    @property
    def rank(self) -> int:
        """Rank for sorting: 0 for BLOCKER, the worst."""
        return list(IssueSeverity).index(self)


#: Risk, 0..1, that an issue of a severity names a real error, before experts have judged issues of its code.
RISK_BY_SEVERITY = {IssueSeverity.BLOCKER: 0.9, IssueSeverity.MAJOR: 0.5, IssueSeverity.MINOR: 0.02}


class QuoteVerdict(StrEnum):
    """Result of searching for a quote in the document's text."""

    VERBATIM = "VERBATIM"
    NOISY = "NOISY"
    WRONG_PAGE = "WRONG_PAGE"
    ALTERED = "ALTERED"
    UNCERTAIN = "UNCERTAIN"
    ABSENT = "ABSENT"


#: One rectangle on a page: page number from 1, then x0, y0, x1, y1 as fractions 0..1 of the page as it is displayed.
PageBox = tuple[int, float, float, float, float]


class Issue(DiscreetModel):
    """Finding about a program's answer, from a rule or from a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ig_id: str
    """Issue group: IG-1 structure, IG-2 consistency, IG-3 evidence, IG-4 domain traps and a site's verifiers."""
    issue_id: str
    """Agent and running number, unique in the document: ``V1-0001``."""
    code: str
    """Stable name of the rule: ``V1-SEGMENT-COUNT``."""
    agent: Agent
    """Agent that raised the issue: a verifier, the classifier, the reader or another."""
    origin: Literal["rule", "model"] = "rule"
    """Source of the issue: a rule, or a model's answer."""
    severity: IssueSeverity
    """Severity: BLOCKER, MAJOR or MINOR."""
    message: str
    """Description of the finding in one sentence, with values of the answer."""
    location: str = ""
    """Place in the answer: ``document_mixture → Genomic Report``."""
    suggested_fix: str = ""
    """Suggestion how to fix the answer; empty if only a person can tell."""
    auto_fixable: bool = False
    """True if the repair table has a lossless repair for the issue; never set by a model."""
    segment_index: int | None = None
    """Segment that the issue is about, as the answer numbers it; None: the whole document."""
    document_type: str | None = None
    """Document type that the issue is about."""
    page: int | None = None
    """Page that the issue is about, or that a quote claims, from 1."""
    quote: str | None = None
    """Words of the document that the issue is about, or that the answer quotes."""
    verdict: QuoteVerdict | None = None
    """Outcome of looking for the quote in the document; None if no quote was checked."""
    difference: str | None = None
    """Difference between the quote and the document's text, in words."""
    found_page: int | None = None
    """Page of the passage that was found for the quote, from 1."""
    boxes: tuple[PageBox, ...] = ()
    """Rectangles of the found passage, or of the words that the issue is about."""
    facts: Mapping[str, int | float | str] = Field(default_factory=dict, exclude_if=not_)
    """Values for the screen's sentence (``plain_sentences.toml``), by name."""
    status: Literal["open", "repaired", "confirmed", "dismissed"] = "open"
    """Status; the arbiter counts open issues, and people confirm or dismiss them."""

    def __hash__(self) -> int:
        """Hash what identifies the issue; ``facts`` cannot be hashed."""
        return hash((self.issue_id, self.code, self.message))

    @classmethod
    def create(cls, agent: Agent, code: str, severity: IssueSeverity, message: str, **fields: Any) -> Issue:
        """Create an issue of the agent's group with the id ``AGENT-0000``.

        ``number_issues`` gives the final id. ``fields``: other attributes of the issue.
        """
        unnumbered = f"{agent.upper()}-0000"
        group = ISSUE_GROUP_BY_AGENT.get(agent, OWN_AGENT_GROUP)
        return cls(
            ig_id=group, issue_id=unnumbered, code=code, agent=agent, severity=severity, message=message, **fields
        )


def sort_by_severity(issues: Iterable[Issue]) -> list[Issue]:
    """Sort issues by severity, worst first; equal severities keep their order."""
    return sorted(issues, key=lambda issue: issue.severity.rank)


def number_issues(agent: Agent, issues: Iterable[Issue], first_number: int = 1) -> list[Issue]:
    """Return the issues with ids ``AGENT-0001`` and so on, from ``first_number``."""
    return [
        issue.model_copy(update={"issue_id": f"{agent.upper()}-{number:04d}"})
        for number, issue in enumerate(issues, first_number)
    ]
