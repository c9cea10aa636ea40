"""Two reviewers of a template, with different eyes: what each of them can measure.

``layout_geometry`` asks whether the template finds where the data stands, ``semantic_financial`` whether it understands
what it says. Each check is a row: facts about a reading go in, issues come out. What is measured is no opinion, and no
model can take it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from evalkit.documents.bundle import DocumentBundle
from evalkit.statements.apply import LeftOver, Statement, apply_to_lines
from evalkit.statements.consensus import passes
from evalkit.statements.lines import Line, lines_of
from evalkit.statements.reconcile import Reconciliation, reconcile
from evalkit.statements.report import Category, Evidence, ReviewerReport, Severity, TemplateIssue
from evalkit.statements.row import Row
from evalkit.statements.template import Column, ColumnName, StatementTemplate

Reviewer = Literal["layout_geometry", "semantic_financial"]
#: Names and version of what measures; raise it with every change that alters an issue.
MODEL = "measured-1"


@dataclass(frozen=True)
class Reading:
    """A template, and what it reads: the same for both reviewers."""

    template: StatementTemplate
    pages: tuple[tuple[Line, ...], ...]
    statement: Statement
    reconciliation: Reconciliation

    @classmethod
    def of(cls, template: StatementTemplate, bundle: DocumentBundle) -> Reading:
        """The statement as the template reads it."""
        return cls._read(template, tuple(lines_of(page) for page in bundle.pages))

    def with_template(self, template: StatementTemplate) -> Reading:
        """The same pages, read by another template."""
        return self._read(template, self.pages)

    @classmethod
    def _read(cls, template: StatementTemplate, pages: tuple[tuple[Line, ...], ...]) -> Reading:
        statement = apply_to_lines(template, pages)
        return cls(template, pages, statement, reconcile(template, statement))

    @property
    def meets_its_sums(self) -> bool:
        """Whether there are sums, and all of them are met; rows that the bank repeats are no sum."""
        sums = [check.is_met for check in self.reconciliation.checks if check.name != "repeated_rows"]
        return bool(sums) and all(sums)

    def left(self, *reasons: str) -> list[LeftOver]:
        """What was left over for one of these reasons."""
        return [one for one in self.statement.left_over if one.reason in reasons]


class Found(NamedTuple):
    """An issue before it is numbered."""

    severity: Severity
    category: Category
    message: str
    page: int | None = None
    location: str = ""
    fix: str = ""


class Check(NamedTuple):
    """One thing that a reviewer measures."""

    reviewer: Reviewer
    find: Callable[[Reading], Iterator[Found]]


def review(reading: Reading, reviewer: Reviewer, *, reviewer_id: str, at: str) -> ReviewerReport:
    """The report of what the reviewer measures. ``at``: ISO 8601, UTC."""
    found = [one for check in CHECKS if check.reviewer == reviewer for one in check.find(reading)]
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
        is_passed=passes(issues),
        issues=issues,
        summary={
            "strengths": [f"{rows} transactions are read"] if rows else [],
            "weaknesses": [issue.message for issue in issues],
            "overall_quality_score": 1.0 / (1 + len(issues)),
        },
        tokens_used={"input": 0, "output": 0},
        reviewed_at=at,
    )


# Where the data stands


def _rows_outside(reading: Reading) -> Iterator[Found]:
    outside = reading.statement.outside
    if outside and not reading.statement.transactions:
        yield Found(
            "critical",
            "bbox_accuracy",
            "the box excludes the table of transactions entirely",
            outside[0].page,
            "region",
        )
    elif outside:
        for page in sorted({one.page for one in outside}):
            count = sum(one.page == page for one in outside)
            fix = "Move the edge of the region beyond these rows"
            yield Found("high", "bbox_accuracy", f"the box cuts off rows: {count} stand outside", page, "region", fix)


def _cut_columns(reading: Reading) -> Iterator[Found]:
    """Columns that reach out of a region: their words are cut off."""
    edges = {(box[0], box[2]) for box in (region.box for region in reading.template.regions)}
    for column in reading.template.columns:
        if any(_cut_words(reading, column, left, right) for left, right in edges):
            yield Found(
                "high", "bbox_accuracy", f"the box cuts off the column {column.name}", None, f"column {column.name}"
            )


def _cut_words(reading: Reading, column: Column, left: float, right: float) -> bool:
    """Whether the rows have words in the column that stand outside of the region's sides."""
    for page, lines in enumerate(reading.pages, 1):
        for box in reading.template.boxes(page, len(reading.pages)):
            if (box[0], box[2]) != (left, right):
                continue
            for line in lines:
                is_row = box[1] <= line.y <= box[3] and Row(reading.template, line).day is not None
                if is_row and any(
                    column.x[0] <= word.x < column.x[1] and not left <= word.x <= right for word in line.words
                ):
                    return True
    return False


def _overlapping_columns(reading: Reading) -> Iterator[Found]:
    for left, right in pairwise(sorted(reading.template.columns, key=lambda column: column.x)):
        if right.x[0] < left.x[1]:
            yield Found(
                "high",
                "column_mapping",
                f"the columns {left.name} and {right.name} overlap",
                None,
                f"column {left.name}",
            )


def _truncated(reading: Reading) -> Iterator[Found]:
    """Texts below a row that no row took."""
    for one in reading.left("it belongs to no transaction"):
        column = reading.template.column("description")
        if column and column.x[0] <= one.box[0] and one.box[2] <= column.x[1]:
            yield Found("high", "multiline_handling", "a further line of a description is left over", one.page, "rows")


def _beside_columns(reading: Reading) -> Iterator[Found]:
    if lost := reading.left("it stands in no column"):
        yield Found(
            "medium", "column_mapping", f"words of {len(lost)} rows stand in no column", lost[0].page, "columns"
        )


# What it says


def _dates(reading: Reading) -> Iterator[Found]:
    if lost := reading.left("its date cannot be read"):
        yield Found("high", "date_format", f"the dates of {len(lost)} rows cannot be read", lost[0].page, "dates")
    if lost := reading.left("its year is not known"):
        yield Found("high", "date_format", f"the year of {len(lost)} rows cannot be told", lost[0].page, "dates")


def _incomplete(reading: Reading) -> Iterator[Found]:
    reasons = ("it has an amount and no date", "it has a date and no amount", "it does not say what it was")
    for reason in reasons:
        if lost := reading.left(reason):
            yield Found("high", "column_mapping", f"{len(lost)} rows are not read: {reason}", lost[0].page, "columns")
    if lost := reading.left("no heading says which way the money went"):
        yield Found("high", "sign_logic", f"the signs of {len(lost)} rows are not known", lost[0].page, "amounts")


def _sums(reading: Reading) -> Iterator[Found]:
    """Sums that do not meet, with the reason where another reading of signs or columns meets all of them."""
    unmet = [check for check in reading.reconciliation.checks if not check.is_met and check.name != "repeated_rows"]
    if not reading.reconciliation.can_reconcile:
        yield Found(
            "medium",
            "reconciliation_strategy",
            "no printed sum is used to check the transactions",
            None,
            "reconciliation",
        )
    if not unmet:
        return
    if reading.with_template(inverted(reading.template)).meets_its_sums:
        yield Found(
            "critical",
            "sign_logic",
            "signs are inverted: debits are shown as credits",
            None,
            "amounts",
            "Exchange the directions",
        )
    elif swapped := next(
        (pair for pair, other in _swapped(reading.template) if reading.with_template(other).meets_its_sums), None
    ):
        said = " and ".join(swapped)
        yield Found(
            "critical",
            "column_mapping",
            f"wrong column mapped to the amount: {said} are exchanged",
            None,
            f"column {swapped[0]}",
            f"Exchange {said}",
        )
    else:
        for check in unmet:
            yield Found(
                "high",
                "reconciliation_strategy",
                f"the transactions do not make the printed sum: {check.name}",
                check.page,
                "reconciliation",
            )


def _repeated(reading: Reading) -> Iterator[Found]:
    for check in reading.reconciliation.checks:
        if check.name == "repeated_rows":
            yield Found("medium", "reconciliation_strategy", "rows of earlier pages are repeated", check.page, "rows")


def _mended(reading: Reading) -> Iterator[Found]:
    mended = [one for one in reading.statement.transactions if one.is_mended]
    if mended:
        yield Found(
            "low", "provenance", f"amounts of {len(mended)} rows were misread and mended", mended[0].page, "amounts"
        )


def inverted(template: StatementTemplate) -> StatementTemplate:
    """The same template, with deposits and withdrawals exchanged."""
    amounts = template.amounts
    unmarked = {"deposit": "withdrawal", "withdrawal": "deposit"}.get(amounts.unmarked, amounts.unmarked)
    signs = {"deposit": amounts.withdrawal, "withdrawal": amounts.deposit, "unmarked": unmarked}
    other = template.model_copy(update={"amounts": amounts.model_copy(update=signs)})
    return _exchanged(other, "debit", "credit")


def _swapped(template: StatementTemplate) -> Iterator[tuple[tuple[ColumnName, ColumnName], StatementTemplate]]:
    """Templates with two columns exchanged."""
    pairs: Sequence[tuple[ColumnName, ColumnName]] = (
        ("amount", "balance"),
        ("debit", "balance"),
        ("credit", "balance"),
    )
    for one, other in pairs:
        if template.column(one) and template.column(other):
            yield (one, other), _exchanged(template, one, other)


def _exchanged(template: StatementTemplate, one: ColumnName, other: ColumnName) -> StatementTemplate:
    names: dict[ColumnName, ColumnName] = {one: other, other: one}
    columns = tuple(
        column.model_copy(update={"name": names.get(column.name, column.name)}) for column in template.columns
    )
    return template.model_copy(update={"columns": columns})


CHECKS = (
    Check("layout_geometry", _rows_outside),
    Check("layout_geometry", _cut_columns),
    Check("layout_geometry", _overlapping_columns),
    Check("layout_geometry", _truncated),
    Check("layout_geometry", _beside_columns),
    Check("semantic_financial", _dates),
    Check("semantic_financial", _incomplete),
    Check("semantic_financial", _sums),
    Check("semantic_financial", _repeated),
    Check("semantic_financial", _mended),
)
