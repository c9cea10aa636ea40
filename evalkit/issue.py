"""Issues: findings that every task raises and every person reads.

An issue is frozen; a change (numbering, a new status) makes a new value. ``Issue(**json)`` round-trips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

ShippedAgent = Literal[
    "V1", "V2", "V3", "V4", "classifier", "reader", "extractor", "evaluator", "grader",
    "layout_geometry", "semantic_financial", "arbitrator",
]  # fmt: skip
OwnAgent = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9]{1,15}$")]
"""A verifier of a site's own: 2 to 16 capitals and digits."""
Agent = ShippedAgent | OwnAgent

OWN_AGENT_GROUP = "IG-4"
#: The issue group of each agent: IG-1 structure, IG-2 consistency, IG-3 evidence, IG-4 domain traps and a site's own.
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
    """How much an issue weighs; the order is worst first."""

    BLOCKER = "BLOCKER"
    MAJOR = "MAJOR"
    MINOR = "MINOR"

    @property
    def rank(self) -> int:
        """0 for the worst; sort by it."""
        return list(IssueSeverity).index(self)


class QuoteVerdict(StrEnum):
    """Outcome of comparing a quote with the document's own text."""

    VERBATIM = "VERBATIM"
    NOISY = "NOISY"
    WRONG_PAGE = "WRONG_PAGE"
    ALTERED = "ALTERED"
    UNCERTAIN = "UNCERTAIN"
    ABSENT = "ABSENT"


#: One rectangle on a page: page number from 1, then x0, y0, x1, y1 as fractions 0..1 of the page as it is displayed.
PageBox = tuple[int, float, float, float, float]


class Issue(BaseModel):
    """One finding about a machine's answer, from a rule or from a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ig_id: str
    """Issue group: IG-1 structure, IG-2 consistency, IG-3 evidence, IG-4 domain traps."""
    issue_id: str
    """Agent and running number, unique in the document: ``V1-0001``."""
    code: str
    """Stable name of the rule: ``V1-SEGMENT-COUNT``."""
    agent: Agent
    """The agent that raised it."""
    origin: Literal["rule", "model"] = "rule"
    """Computed by a rule, or found by a model."""
    severity: IssueSeverity
    """BLOCKER, MAJOR or MINOR."""
    message: str
    """One sentence for a clinician."""
    location: str = ""
    """Place in the answer: ``document_mixture → Genomic Report``."""
    suggested_fix: str = ""
    """A way to fix it; empty if only a person can tell."""
    auto_fixable: bool = False
    """If the repair table has a lossless repair for it; never set by a model."""
    segment_index: int | None = None
    """The segment it is about, as the answer numbers it."""
    document_type: str | None = None
    """The document type it is about."""
    page: int | None = None
    """The page that was claimed, from 1."""
    quote: str | None = None
    """The words that were claimed."""
    verdict: QuoteVerdict | None = None
    """Outcome of comparing the quote with the document."""
    difference: str | None = None
    """Difference between quote and document, in words."""
    found_page: int | None = None
    """The page on which the quote, or the passage most like it, really is."""
    boxes: tuple[PageBox, ...] = ()
    """The rectangles of that place."""
    facts: Mapping[str, int | float | str] = Field(default_factory=dict)
    """Findings of the rule, as names with numbers or words; the screen's sentence is made from them, never from ``message``."""
    status: Literal["open", "repaired", "confirmed", "dismissed"] = "open"
    """Open issues are counted by the arbiter; people confirm or dismiss them."""

    @classmethod
    def create(cls, agent: Agent, code: str, severity: IssueSeverity, message: str, **fields: Any) -> Issue:
        """Create an issue of that agent, in its group, not numbered yet."""
        unnumbered = f"{agent.upper()}-0000"
        group = ISSUE_GROUP_BY_AGENT.get(agent, OWN_AGENT_GROUP)
        return cls(
            ig_id=group, issue_id=unnumbered, code=code, agent=agent, severity=severity, message=message, **fields
        )


def sort_by_severity(issues: Iterable[Issue]) -> list[Issue]:
    """Worst first; within a severity the order of raising is kept."""
    return sorted(issues, key=lambda issue: issue.severity.rank)


def number_issues(agent: Agent, issues: Iterable[Issue], first_number: int = 1) -> list[Issue]:
    """Assign the ids ``AGENT-0001`` and on, from ``first_number``."""
    return [
        issue.model_copy(update={"issue_id": f"{agent.upper()}-{number:04d}"})
        for number, issue in enumerate(issues, first_number)
    ]
