"""What the reviewer ``layout_geometry`` measures: whether the template finds where the data stands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from evalkit.statements.apply import LeftOver
from evalkit.statements.reading import Found, Reading
from evalkit.statements.row import Row
from evalkit.statements.template import Column

_NOBODYS = "it belongs to no transaction"
#: A description's next line stands so near below, in heights of a line.
_NEAR = 2.2


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
    column = reading.template.column("description")
    for one in reading.left(_NOBODYS):
        if column and column.x[0] <= one.box[0] and one.box[2] <= column.x[1] and _is_among_rows(reading, one):
            yield Found("high", "multiline_handling", "a further line of a description is left over", one.page, "rows")


def _too_large(reading: Reading) -> Iterator[Found]:
    """Lines above the first row of a page or below its last, that the box need not hold."""
    for page in range(1, len(reading.pages) + 1):
        count = sum(one.page == page and not _is_among_rows(reading, one) for one in reading.left(_NOBODYS))
        if count:
            said = f"the box is larger than necessary: {count} of its lines are no part of the table"
            yield Found("low", "bbox_accuracy", said, page, "region", "Move its edges to the table's")


def _is_among_rows(reading: Reading, one: LeftOver) -> bool:
    """Whether it stands between the first row of its page and the last, or so near below that as a further line does."""
    rows = [box for row in reading.statement.transactions if row.page == one.page for box in row.boxes]
    if not rows:
        return False
    above, below = min(box[1] for box in rows), max(box[3] for box in rows)
    return above <= one.box[1] and one.box[1] - below <= _NEAR * (one.box[3] - one.box[1])


def _titles(reading: Reading) -> Iterator[Found]:
    """Titles that are not printed where their column stands."""
    for column in reading.template.columns:
        printed = {
            word.text.casefold()
            for lines in reading.pages
            for line in lines
            for word in line.words
            if column.x[0] <= word.x < column.x[1]
        }
        if not printed.issuperset(column.title.casefold().split()):
            said = f"the title of the column {column.name} is not printed above it"
            yield Found("low", "other", said, None, f"column {column.name}", "Write the title as it is printed")


def _beside_columns(reading: Reading) -> Iterator[Found]:
    if lost := reading.left("it stands in no column"):
        yield Found(
            "medium", "column_mapping", f"words of {len(lost)} rows stand in no column", lost[0].page, "columns"
        )


CHECKS = (_rows_outside, _cut_columns, _overlapping_columns, _truncated, _beside_columns, _too_large, _titles)
