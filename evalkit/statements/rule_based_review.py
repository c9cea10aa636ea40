"""Review a template by rules, as one of two reviewers with different tasks.

``layout_geometry`` checks that the template finds all data, ``semantic_financial`` that the data is interpreted
correctly. Each check is a function that takes what the template reads and yields issues. The issues that rules raise
are called measured: no model can remove them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from evalkit.statements import financial_checks, layout_checks
from evalkit.statements.applied_template import AppliedTemplate, TemplateFinding
from evalkit.statements.consensus import MAX_ISSUES_BY_SEVERITY, is_template_passing
from evalkit.statements.reviewer_report import IssueEvidence, ReviewerReport, TemplateIssue, TemplateIssueSeverity

TemplateReviewer = Literal["layout_geometry", "semantic_financial"]
#: Version of the rules; raise the number with every change that alters an issue.
RULE_REVIEWER_VERSION = "measured-5"


#: The rules of each reviewer, in the order of the report.
CHECKS_BY_REVIEWER: Mapping[TemplateReviewer, tuple[Callable[[AppliedTemplate], Iterator[TemplateFinding]], ...]] = {
    "layout_geometry": layout_checks.LAYOUT_CHECKS,
    "semantic_financial": financial_checks.FINANCIAL_CHECKS,
}


def review_by_rules(
    applied_template: AppliedTemplate,
    reviewer: TemplateReviewer,
    *,
    reviewer_id: str,
    reviewed_at: str,
    max_issues_by_severity: Mapping[TemplateIssueSeverity, int] = MAX_ISSUES_BY_SEVERITY,
) -> ReviewerReport:
    """Run all rules of a reviewer and build the report.

    ``reviewed_at``: time of the review, ISO 8601, UTC.
    """
    findings = [finding for check in CHECKS_BY_REVIEWER[reviewer] for finding in check(applied_template)]
    issues = tuple(
        TemplateIssue(
            issue_id=f"{reviewer}_{number:03}",
            severity=finding.severity,
            category=finding.category,
            message=finding.message,
            page=finding.page,
            evidence=IssueEvidence(location=finding.location),
            suggested_fix=finding.suggested_fix,
        )
        for number, finding in enumerate(findings, 1)
    )
    row_count = len(applied_template.statement.transactions)
    return ReviewerReport(
        reviewer_id=reviewer_id,
        reviewer_role=reviewer,
        reviewer_model=RULE_REVIEWER_VERSION,
        template_id=applied_template.template.template_id,
        template_version=str(applied_template.template.version),
        is_passed=is_template_passing(issues, max_issues_by_severity),
        issues=issues,
        summary={
            "strengths": [f"{row_count} transactions are read"] if row_count else [],
            "weaknesses": [issue.message for issue in issues],
            "overall_quality_score": 1.0 / (1 + len(issues)),
        },
        tokens_used={"input": 0, "output": 0},
        reviewed_at=reviewed_at,
    )
