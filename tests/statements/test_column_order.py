"""A table is read in any order of its columns, with the dates moved to its left."""

from __future__ import annotations

from itertools import permutations

import pytest
from builders import document

from evalkit.statements.column_order import group_pages_into_lines
from evalkit.statements.template_builder import build_draft_template

_TITLES = {"date": "Date", "text": "Details", "amount": "Amount", "balance": "Balance"}
_ROWS = (
    ("02/03/2024", "SHOP A", "-12.00", "88.00"),
    ("05/03/2024", "SALARY", "50.00", "138.00"),
    ("14/03/2024", "SHOP C", "-7.50", "130.50"),
    ("17/03/2024", "RENT", "-30.25", "100.25"),
)
_WIDTHS = {"date": 14, "text": 16, "amount": 12, "balance": 12}


def _print_statement(order: tuple[str, ...]) -> str:
    def print_line(cells: dict[str, str]) -> str:
        return "".join(
            cells[name].rjust(_WIDTHS[name] - 3) + "   " if name in ("amount", "balance") else cells[name].ljust(_WIDTHS[name])
            for name in order
        )  # fmt: skip

    rows = (dict(zip(_TITLES, row, strict=True)) for row in _ROWS)
    head = "Example Bank\nStatement period 01/03/2024 to 31/03/2024\nOpening balance   100.00\n\n"
    return head + "\n".join(map(print_line, (_TITLES, *rows)))


@pytest.mark.parametrize("order", list(permutations(_TITLES)))
def test_rows_are_read_in_any_order_of_columns(order: tuple[str, ...]) -> None:
    read = build_draft_template(document(_print_statement(order))).statement.transactions
    assert [(row.description, str(row.amount), str(row.balance)) for row in read] == [row[1:] for row in _ROWS]


def test_boxes_of_moved_words_stay_on_the_page() -> None:
    bundle = document(_print_statement(("text", "amount", "balance", "date")))
    words = [word for lines in group_pages_into_lines(bundle.pages) for line in lines for word in line.words]
    date_word = next(word for word in words if word.text == "02/03/2024")
    assert date_word.page_box is not None
    assert date_word.box[0] < 0.01 < date_word.page_box[0]


def test_codes_left_of_dates_stay_outside_the_text() -> None:
    codes = ("AB12XY", "CD34XY", "EF56XY", "GH78XY")
    rows = "\n".join(
        f"{code}   {day}   {text:14}{amount:>10}{balance:>12}"
        for code, (day, text, amount, balance) in zip(codes, _ROWS, strict=True)
    )
    read = build_draft_template(document(f"Example Bank\nOpening balance   100.00\n\n{rows}")).statement.transactions
    assert [row.description for row in read] == [row[1] for row in _ROWS]


def test_a_date_behind_the_text_stays_behind_the_first() -> None:
    lines = ("02/03/2024   SHOP A        04/03/2024     12.00", "05/03/2024   SALARY        06/03/2024     50.00",
             "14/03/2024   SHOP C        16/03/2024      7.50")  # fmt: skip
    head = "Example Bank\nStatement period 01/03/2024 to 31/03/2024\n\nDate         Name          Posted      Amount\n"
    rows = build_draft_template(document(head + "\n".join(lines))).statement.transactions
    assert [row.date for row in rows] == ["2024-03-02", "2024-03-05", "2024-03-14"]
