"""Checks of the reviewer ``layout_geometry``: the template finds all data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from evalkit.statements.applied_template import AppliedTemplate, TemplateFinding
from evalkit.statements.statement_parser import LeftoverReason, LeftoverText
from evalkit.statements.statement_template import Column
from evalkit.statements.table_row import TableRow

_NO_TRANSACTION_REASON = "it belongs to no transaction"
#: Largest distance of a description's next line, in heights of a line.
_MAX_CONTINUATION_DISTANCE = 2.2


#: Reasons for which a row was found in the table, but not read as a transaction.
_UNREAD_ROW_REASONS: tuple[LeftoverReason, ...] = (
    "its date cannot be read",
    "its year is not known",
    "it has an amount and no date",
    "it has a date and no amount",
    "no heading says which way the money went",
    "it has dates behind its amounts",
    "it does not say what it was",
)


def _find_rows_outside_regions(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    rows_outside = applied_template.statement.outside
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
            suggested_fix = "Move the edge of the region beyond these rows"
            yield TemplateFinding(
                "high", "bbox_accuracy", f"the box cuts off rows: {count} are outside", page, "region", suggested_fix
            )


def _find_cut_off_columns(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report columns with words that the region cuts off."""
    region_sides = {(box[0], box[2]) for box in (region.box for region in applied_template.template.regions)}
    for column in applied_template.template.columns:
        if any(_has_cut_off_words(applied_template, column, left, right) for left, right in region_sides):
            yield TemplateFinding(
                "high", "bbox_accuracy", f"the box cuts off the column {column.name}", None, f"column {column.name}"
            )


def _has_cut_off_words(applied_template: AppliedTemplate, column: Column, left_edge: float, right_edge: float) -> bool:
    template, lines_by_page = applied_template.template, applied_template.lines_by_page
    row_lines = (
        line
        for page_number, lines in enumerate(lines_by_page, 1)
        for box in template.find_region_boxes(page_number, len(lines_by_page))
        for line in lines
        if (box[0], box[2]) == (left_edge, right_edge)
        and box[1] <= line.deskewed_center_y <= box[3]
        and TableRow(template, line).partial_date is not None
    )
    return any(
        column.x[0] <= word.center_x < column.x[1] and not left_edge <= word.center_x <= right_edge
        for line in row_lines
        for word in line.words
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
            message = f"the box is larger than necessary: {count} of its lines are not part of the table"
            yield TemplateFinding("low", "bbox_accuracy", message, page, "region", "Move its edges to the table's")


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
            message = f"the title of the column {column.name} is not printed above it"
            yield TemplateFinding(
                "low", "other", message, None, f"column {column.name}", "Write the title as it is printed"
            )


def _find_words_outside_columns(applied_template: AppliedTemplate) -> Iterator[TemplateFinding]:
    if leftovers := applied_template.select_leftovers("it stands in no column"):
        yield TemplateFinding(
            "medium",
            "column_mapping",
            f"words of {len(leftovers)} rows are in no column",
            leftovers[0].page,
            "columns",
        )


LAYOUT_CHECKS = (
    _find_rows_outside_regions,
    _find_cut_off_columns,
    _find_overlapping_columns,
    _find_truncated_descriptions,
    _find_words_outside_columns,
    _find_oversized_regions,
    _find_wrong_column_titles,
)
