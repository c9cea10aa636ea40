"""Two reviewers of a template, with different eyes: what each of them can measure.

``layout_geometry`` asks whether the template finds where the data stands, ``semantic_financial`` whether it understands
what it says. Each check is a function: facts about a reading go in, issues come out. What is measured is no opinion, and no
model can take it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from evalkit.statements import finance, geometry
from evalkit.statements.consensus import MOST, passes
from evalkit.statements.reading import Found, Reading
from evalkit.statements.report import Evidence, ReviewerReport, Severity, TemplateIssue

Reviewer = Literal["layout_geometry", "semantic_financial"]
#: Names and version of what measures; raise it with every change that alters an issue.
MODEL = "measured-4"


#: What each of them measures.
CHECKS: Mapping[Reviewer, tuple[Callable[[Reading], Iterator[Found]], ...]] = {
    "layout_geometry": geometry.CHECKS,
    "semantic_financial": finance.CHECKS,
}


def review(
    reading: Reading, reviewer: Reviewer, *, reviewer_id: str, at: str, most: Mapping[Severity, int] = MOST
) -> ReviewerReport:
    """The report of what the reviewer measures. ``at``: ISO 8601, UTC; ``most``: so many issues pass."""
    found = [one for check in CHECKS[reviewer] for one in check(reading)]
    issues = tuple(
        TemplateIssue(
            issue_id=f"{reviewer}_{number:03}",
            severity=one.severity,
            category=one.category,
            message=one.message,
            page=one.page,
            evidence=Evidence(location=one.location),
            suggested_fix=one.fix,
        )
        for number, one in enumerate(found, 1)
    )
    rows = len(reading.statement.transactions)
    return ReviewerReport(
        reviewer_id=reviewer_id,
        reviewer_role=reviewer,
        reviewer_model=MODEL,
        template_id=reading.template.template_id,
        template_version=str(reading.template.version),
        is_passed=passes(issues, most),
        issues=issues,
        summary={
            "strengths": [f"{rows} transactions are read"] if rows else [],
            "weaknesses": [issue.message for issue in issues],
            "overall_quality_score": 1.0 / (1 + len(issues)),
        },
        tokens_used={"input": 0, "output": 0},
        reviewed_at=at,
    )
