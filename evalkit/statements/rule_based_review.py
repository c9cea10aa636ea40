"""Review of a template by rules, for two reviewers with different tasks.

``layout_geometry`` checks that the template finds all data, ``semantic_financial`` that the data is interpreted
correctly. Each check is a function that takes what the template reads and yields issues. The issues that rules raise
are called measured: no model can remove them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from evalkit.documents.bundle import Box
from evalkit.statements.amounts import parse_amount
from evalkit.statements.applied_template import AppliedTemplate, TemplateFinding
from evalkit.statements.audit_comparison import (
    find_missed_rows,
    find_mixed_accounts,
    find_unused_sums,
    find_wrong_amounts,
    find_wrong_balances,
    find_wrong_dates,
    find_wrong_descriptions,
    find_wrong_directions,
    is_total,
)
from evalkit.statements.dates import has_year, parse_partial_date
from evalkit.statements.reviewer_report import (
    MAX_ISSUES_BY_SEVERITY,
    IssueEvidence,
    ReviewerReport,
    TemplateIssue,
    TemplateIssueCategory,
    TemplateIssueSeverity,
    is_template_passing,
)
from evalkit.statements.statement_audit import audit_lines, has_word, load_audit_words
from evalkit.statements.statement_parser import LeftoverReason, LeftoverText, Transaction
from evalkit.statements.table_row import TableRow
from evalkit.statements.text_lines import TextLine

_CAUSES_OF_UNMET_SUMS = (find_wrong_directions, find_wrong_balances, find_wrong_amounts)
#: Two adjacent blanks, a blank at either end, or blanks between single letters.
_BLANKS = re.compile(r"\s{2}|^\s|\s$|(?:\b\w\s){4}\w\b")
_CHECK_NUMBER_PATTERN = re.compile(r"\W?\d{2,8}\W?")
#: A line with fewer known column titles is not a table header.
_MIN_KNOWN_TITLES = 3


@dataclass(frozen=True)
class _CountedFault:
    """A fault of single rows or words: an issue says how many have it."""

    select: Callable[[AppliedTemplate], Sequence[Transaction | LeftoverText]]
    severity: TemplateIssueSeverity
    category: TemplateIssueCategory
    message: str
    location: str
    suggested_fix: str = ""

    def __call__(self, applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
        """Report the fault if any row has it, with the page of the first."""
        if affected := self.select(applied_template):
            message = self.message.format(count=len(affected))
            yield TemplateFinding(
                self.severity, self.category, message, affected[0].page, self.location, self.suggested_fix
            )


def _find_unmet_sums(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report printed sums that the transactions do not add up to.

    If the pages show that all signs or a whole column are wrong, that mistake is reported instead of the sums.
    """
    unmet_checks = [check for check in applied_template.sum_checks if not check.is_met]
    if not unmet_checks or any(
        finding.severity == "critical" for check in _CAUSES_OF_UNMET_SUMS for finding in check(applied_template)
    ):
        return
    for check in unmet_checks:
        yield TemplateFinding(
            "high",
            "reconciliation_strategy",
            f"the transactions do not make the printed sum: {check.name.replace('_', ' ')}",
            check.page,
            "reconciliation",
        )


def _find_missed_check_numbers(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report numbers below a title of check numbers that no transaction contains."""
    printed_numbers = [
        word
        for lines in applied_template.lines_by_page
        for title_box in _find_check_number_titles(lines)
        for line in lines
        if line.deskewed_center_y > title_box[3] and TableRow(applied_template.template, line).partial_date
        for word in line.words
        if title_box[0] < word.box[2] and word.box[0] < title_box[2] and _CHECK_NUMBER_PATTERN.fullmatch(word.text)
    ]
    missed_count = len(printed_numbers) - sum(
        bool(transaction.check_number) for transaction in applied_template.statement.transactions
    )
    if printed_numbers and missed_count > 0:
        yield TemplateFinding(
            "medium",
            "column_mapping",
            f"{missed_count} check numbers are not captured",
            None,
            "column check_number",
            "Map the column of check numbers",
        )


def _find_check_number_titles(lines: Sequence[TextLine]) -> Iterator[Box]:
    """Find the boxes of check-number titles in table headers, not in transactions."""
    for line in lines:
        title_cells = [
            cell
            for cell in line.cells
            if any(has_word(cell.text, "column", name) for name in load_audit_words()["column"])
        ]
        if len(title_cells) >= _MIN_KNOWN_TITLES:
            yield from (cell.box for cell in title_cells if has_word(cell.text, "column", "check"))


def _find_unused_date_formats(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    date_formats = applied_template.template.dates.formats
    rows = [
        row
        for lines in applied_template.lines_by_page
        for line in lines
        if (row := TableRow(applied_template.template, line)).partial_date
    ]
    used_formats = {
        next(
            (
                date_format
                for date_format in date_formats
                if parse_partial_date(text, (date_format,), is_ocr_text=row.line.is_ocr_text)
            ),
            None,
        )
        for row in rows
        if (text := " ".join(word.text for word in row.date_words))
    }
    if rows and (unused_formats := [date_format for date_format in date_formats if date_format not in used_formats]):
        yield TemplateFinding(
            "low",
            "date_format",
            f"no row is dated as {', '.join(unused_formats)}",
            None,
            "dates",
            "Remove formats that no row uses",
        )


def _find_guessed_year(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    date_rules = applied_template.template.dates
    if (
        not date_rules.period
        and not all(map(has_year, date_rules.formats))
        and any(
            has_word(text, "date", "period") for text, _ in audit_lines(applied_template.lines_by_page).header_dates
        )
    ):
        yield TemplateFinding(
            "low",
            "date_format",
            "the year is taken from the latest date, although the statement prints its period",
            None,
            "dates",
            "Name the line that prints the period",
        )


def _find_repeated_page_rows(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    for check in applied_template.reconciliation.checks:
        if check.name == "repeated_rows":
            yield TemplateFinding(
                "medium", "reconciliation_strategy", "rows of earlier pages are repeated", check.page, "rows"
            )


_NO_TRANSACTION_REASON = "it belongs to no transaction"
#: Largest distance of a description's next line, in heights of a line.
_MAX_CONTINUATION_DISTANCE = 2.2


#: Reasons for which a row was found in the table, but not read as a transaction.
_UNREAD_ROW_REASONS: tuple[LeftoverReason, ...] = (
    "its date cannot be read",
    "it has an amount and no date",
    "it has a date and no amount",
    "no heading says which way the money went",
    "it has dates behind its amounts",
    "it does not say what it was",
)


def _find_rows_outside_regions(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    rows_outside = () if applied_template.is_closed else applied_template.statement.outside
    if (
        not rows_outside
        and not applied_template.statement.transactions
        and not applied_template.select_leftovers(*_UNREAD_ROW_REASONS)
    ):
        # A template that finds no rows at all would otherwise raise no issue.
        yield TemplateFinding("critical", "bbox_accuracy", "no transaction is read", None, "region")
    elif rows_outside and not applied_template.statement.transactions:
        yield TemplateFinding(
            "critical",
            "bbox_accuracy",
            "the box excludes the table of transactions entirely",
            rows_outside[0].page,
            "region",
        )
    elif rows_outside:
        for page in sorted({leftover.page for leftover in rows_outside}):
            count = sum(leftover.page == page for leftover in rows_outside)
            yield TemplateFinding(
                "high",
                "bbox_accuracy",
                f"the box cuts off rows: {count} are outside",
                page,
                "region",
                "Move the edge of the region beyond these rows",
            )


def _find_cut_off_columns(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report columns with words that the region cuts off."""
    template, lines_by_page = applied_template.template, applied_template.lines_by_page
    words_and_regions = [
        (word, region)
        for page_number, lines in enumerate(lines_by_page, 1)
        for region in template.find_regions(page_number, len(lines_by_page))
        for line in lines
        if region.box[1] <= line.deskewed_center_y <= region.box[3] and TableRow(template, line).partial_date
        for word in line.words
    ]
    for column in template.columns:
        if any(
            column.x[0] <= word.center_x - region.shift < column.x[1]
            and not region.box[0] <= word.center_x <= region.box[2]
            for word, region in words_and_regions
        ):
            yield TemplateFinding(
                "high", "bbox_accuracy", f"the box cuts off the column {column.name}", None, f"column {column.name}"
            )


def _find_overlapping_columns(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    for left_column, right_column in pairwise(sorted(applied_template.template.columns, key=lambda column: column.x)):
        if right_column.x[0] < left_column.x[1]:
            yield TemplateFinding(
                "high",
                "column_mapping",
                f"the columns {left_column.name} and {right_column.name} overlap",
                None,
                f"column {left_column.name}",
            )


def _find_truncated_descriptions(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report lines in the description column that belong to no transaction."""
    column = applied_template.template.find_column("description")
    for leftover in applied_template.select_leftovers(_NO_TRANSACTION_REASON):
        if (
            column
            and column.x[0] <= leftover.box[0]
            and leftover.box[2] <= column.x[1]
            and _is_among_rows(applied_template, leftover)
        ):
            yield TemplateFinding(
                "high", "multiline_handling", "a further line of a description is left over", leftover.page, "rows"
            )


def _find_oversized_regions(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report regions that include lines above or below the table."""
    for page in range(1, len(applied_template.lines_by_page) + 1):
        count = sum(
            leftover.page == page and not _is_among_rows(applied_template, leftover)
            for leftover in applied_template.select_leftovers(_NO_TRANSACTION_REASON)
        )
        if count:
            yield TemplateFinding(
                "low",
                "bbox_accuracy",
                f"the box is larger than necessary: {count} of its lines are not part of the table",
                page,
                "region",
                "Move its edges to the table's",
            )


def _is_among_rows(applied_template: AppliedTemplate, leftover: LeftoverText) -> bool:
    """Return True if the leftover is between the page's rows, or close below the last."""
    row_boxes = [
        box for row in applied_template.statement.transactions if row.page == leftover.page for box in row.boxes
    ]
    if not row_boxes:
        return False
    top, bottom = min(box[1] for box in row_boxes), max(box[3] for box in row_boxes)
    return top <= leftover.box[1] and leftover.box[1] - bottom <= _MAX_CONTINUATION_DISTANCE * (
        leftover.box[3] - leftover.box[1]
    )


def _find_wrong_column_titles(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    for column in applied_template.template.columns:
        printed_words = {
            word.text.casefold()
            for lines in applied_template.lines_by_page
            for line in lines
            for word in line.words
            if column.x[0] <= word.center_x < column.x[1]
        }
        if not printed_words.issuperset(column.title.casefold().split()):
            yield TemplateFinding(
                "low",
                "other",
                f"the title of the column {column.name} is not printed above it",
                None,
                f"column {column.name}",
                "Write the title as it is printed",
            )


def _select_rows(applied_template: AppliedTemplate, reason: LeftoverReason) -> list[LeftoverText]:
    """Return the rows left over that are no totals; none if balances need none."""
    leftovers = () if applied_template.is_closed else applied_template.select_leftovers(reason)
    return [leftover for leftover in leftovers if not is_total(applied_template, leftover.page, leftover.box)]


TemplateReviewer = Literal["layout_geometry", "semantic_financial"]
#: Version of the rules; raise the number with every change that alters an issue.
RULE_REVIEWER_VERSION = "measured-12"


#: The rules of each reviewer, in the order of the report.
CHECKS_BY_REVIEWER: Mapping[TemplateReviewer, tuple[Callable[[AppliedTemplate], Iterator[TemplateFinding]], ...]] = {
    "layout_geometry": (
        _find_rows_outside_regions,
        _find_cut_off_columns,
        _find_overlapping_columns,
        _find_truncated_descriptions,
        _CountedFault(
            lambda applied: applied.select_leftovers("it stands in no column"),
            "medium", "column_mapping", "words of {count} rows are in no column", "columns",
        ),
        _find_oversized_regions,
        _find_wrong_column_titles,
        find_missed_rows,
        find_wrong_descriptions,
    ),
    "semantic_financial": (
        _CountedFault(
            lambda applied: _select_rows(applied, "its date cannot be read"),
            "high", "date_format", "the dates of {count} rows cannot be read", "dates",
        ),
        _CountedFault(
            lambda applied: [row for row in applied.statement.transactions if row.is_year_open],
            "high", "date_format", "the year of {count} rows is unknown", "dates",
        ),
        _CountedFault(
            lambda applied: _select_rows(applied, "it has an amount and no date"),
            "high", "column_mapping", "{count} rows are not read: they have an amount and no date", "columns",
        ),
        _CountedFault(
            lambda applied: _select_rows(applied, "it has a date and no amount"),
            "high", "column_mapping", "{count} rows are not read: they have a date and no amount", "columns",
        ),
        _CountedFault(
            lambda applied: applied.select_leftovers("it does not say what it was"),
            "high", "column_mapping", "{count} rows are not read: they have no description", "columns",
        ),
        _CountedFault(
            lambda applied: applied.select_leftovers("no heading says which way the money went"),
            "high", "sign_logic", "the signs of {count} rows are not known", "amounts",
        ),
        _find_unmet_sums,
        find_unused_sums,
        find_wrong_directions,
        find_wrong_balances,
        find_wrong_dates,
        find_wrong_amounts,
        find_mixed_accounts,
        _find_repeated_page_rows,
        _CountedFault(
            lambda applied: [row for row in applied.statement.transactions if row.is_mended],
            "low", "provenance", "amounts of {count} rows were misread and corrected", "amounts",
        ),
        _CountedFault(
            lambda applied: [row for row in applied.statement.transactions if _BLANKS.search(row.description)],
            "medium", "other", "extra blanks in the descriptions of {count} rows", "rows", "Join words and lines by one blank",
        ),
        # Mostly beside a too narrow column of the balance.
        _CountedFault(
            lambda applied: [
                leftover
                for leftover in applied.select_leftovers("it stands in no column")
                if any(parse_amount(word, applied.template.amounts.decimal) for word in leftover.text.split())
            ],
            "medium", "column_mapping",
            "amounts of {count} rows are in no column: the balance's could be more precise", "column balance", "Widen it around its amounts",
        ),
        _find_missed_check_numbers,
        _find_unused_date_formats,
        _find_guessed_year,
    ),
}  # fmt: skip


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
            evidence=IssueEvidence(expected=finding.expected, actual=finding.actual, location=finding.location),
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
