"""Tables beside one another, lists beside a table, marks and cents in columns of their own, rows over two pages."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from evalkit.documents.readers import read_document
from evalkit.statements.amounts import parse_amount
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.statement_template import parse_template_toml, render_template_toml
from evalkit.statements.template_builder import build_draft_template

Cells = list[tuple[float, str]]
"""x in points and text; a negative x is the right edge."""
_PERIOD: Cells = [(50, "Statement period 01/03/2024 to 31/03/2024")]


def build(folder: Path, *pages: list[Cells], turn: int = 0) -> AppliedTemplate:
    document = pymupdf.open()
    for lines in pages:
        page, y = document.new_page(width=595, height=842), 60.0
        for cells in lines:
            for x, text in cells:
                left = x if x > 0 else -x - pymupdf.get_text_length(text, fontsize=9)
                page.insert_text((left, y), text, fontsize=9)
            y += 13
    if turn:
        level, document = document, pymupdf.open()
        for page in level:
            page_sideways = document.new_page(width=842, height=595)
            page_sideways.show_pdf_page(page_sideways.rect, level, page.number, rotate=turn)
    path = folder / "statement.pdf"
    document.save(path)
    return build_draft_template(read_document(path, doc_id="statement", processing_timestamp=""))


def read_rows(applied_template: AppliedTemplate) -> list[tuple[str, str, str]]:
    return [(row.date[-2:], row.description, str(row.amount)) for row in applied_template.statement.transactions]


def pair(label: str, amount: str) -> Cells:
    return [(50, label), (-250, amount)]


_BALANCES: list[Cells] = [
    [(50, "Riverside Bank")],
    _PERIOD,
    pair("Opening balance", "100.00"),
    pair("Closing balance", "130.00"),
]
_HEAD: Cells = [(50, "Date"), (95, "Description"), (-280, "Amount")]


def row(day: str, text: str, amount: str, shift: float = 0) -> Cells:
    return [(50 + shift, day), (95 + shift, text), (-280 - shift, amount)]


def shifted(cells: Cells) -> Cells:
    return [(x + 270 if x > 0 else x - 270, text) for x, text in cells]


_LEFT = [row("02/03", "Wages", "50.00"), row("05/03", "Bakery", "-10.00"), row("07/03", "Fuel", "-20.00")]
_RIGHT = [
    row("09/03", "Refund", "30.00", 270),
    row("12/03", "Books", "-5.00", 270),
    row("20/03", "Rail", "-15.00", 270),
]
_ROWS = [
    ("02", "Wages", "50.00"), ("05", "Bakery", "-10.00"), ("07", "Fuel", "-20.00"),
    ("09", "Refund", "30.00"), ("12", "Books", "-5.00"), ("20", "Rail", "-15.00"),
]  # fmt: skip


def test_tables_side_by_side_are_read_in_order(tmp_path: Path) -> None:
    lines = [left + right for left, right in zip(_LEFT, _RIGHT, strict=True)]
    applied_template = build(tmp_path, [*_BALANCES, [], _HEAD + shifted(_HEAD), *lines])
    assert read_rows(applied_template) == _ROWS
    assert applied_template.has_all_sums_met
    # The places of the rows on the page are those that are printed.
    assert applied_template.statement.transactions[3].boxes[0][0] > 0.5
    assert parse_template_toml(render_template_toml(applied_template.template), "t") == applied_template.template


def test_note_below_one_table_does_not_end_the_other(tmp_path: Path) -> None:
    lines = [left + right for left, right in zip(_LEFT, _RIGHT, strict=True)]
    note: Cells = [(50, "6 entries. Rate 2.25 %.")]
    applied_template = build(tmp_path, [*_BALANCES, [], _HEAD + shifted(_HEAD), *lines, [], [], note])
    assert read_rows(applied_template) == _ROWS
    assert applied_template.statement.outside == ()


def test_texts_left_of_their_dates_are_read(tmp_path: Path) -> None:
    texts = [("Wages", "02 Mar", "50.00Cr"), ("Corner Bakery", "05 Mar", "10.00Dr"), ("Fuel", "07 Mar", "10.00Dr")]
    lines: list[Cells] = [[(50, text), (250, day), (-450, amount)] for text, day, amount in texts]
    lines.insert(2, [(50, "Mill Lane")])
    head: Cells = [(50, "Particulars"), (250, "Posted"), (-450, "Amount")]
    balances = [pair("Balance last statement", "100.00Cr"), pair("Balance this statement", "130.00Cr")]
    applied_template = build(tmp_path, [[(50, "Riverside Bank")], _PERIOD, *balances, [], head, *lines])
    assert read_rows(applied_template) == [
        ("02", "Wages", "50.00"), ("05", "Corner Bakery Mill Lane", "-10.00"), ("07", "Fuel", "-10.00"),
    ]  # fmt: skip
    assert applied_template.has_all_sums_met


@pytest.mark.parametrize("title", ["Location", "Ville", "Ort"])
def test_towns_are_no_part_of_a_description(tmp_path: Path, title: str) -> None:
    texts = [
        ("02/03", "Wages", "Leeds", "50.00"),
        ("05/03", "Bakery", "Hull", "-10.00"),
        ("07/03", "Fuel", "York", "-10.00"),
    ]
    lines: list[Cells] = [[(50, day), (110, text), (300, town), (-540, amount)] for day, text, town, amount in texts]
    head: Cells = [(50, "Date"), (110, "Details"), (300, title), (-540, "Amount")]
    applied_template = build(tmp_path, [*_BALANCES, [], head, *lines])
    assert [description for _, description, _ in read_rows(applied_template)] == ["Wages", "Bakery", "Fuel"]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("Solde au début", "Solde à la fin"), ("Saldo al inicio", "Saldo al final del periodo"),
        ("Saldo am Anfang", "Saldo am Ende"), ("Balance at 1 March", "Balance at the end of March"),
        ("Opening position", "Closing position"), ("Alkusaldo", "Loppusaldo"),
        ("Total da fatura anterior", "Total desta fatura"), ("Balance at the end of last month", "Saldo a pagar"),
    ],
)  # fmt: skip
def test_balances_in_other_words_are_told_apart(tmp_path: Path, opening: str, closing: str) -> None:
    lines = [
        pair(opening, "100.00"),
        pair(closing, "130.00"),
        [],
        _HEAD,
        row("02/03", "Wages", "50.00"),
        row("05/03", "Bakery", "-20.00"),
    ]
    applied_template = build(tmp_path, [[(50, "Riverside Bank")], _PERIOD, *lines])
    assert {each.kind: str(abs(each.value)) for each in applied_template.statement.sums} == {
        "opening": "100.00",
        "closing": "130.00",
    }


def test_totals_below_both_columns_are_sums(tmp_path: Path) -> None:
    head: Cells = [(50, "Date"), (110, "Details"), (-400, "Spent"), (-500, "Received")]
    lines: list[Cells] = [
        [(50, "02/03"), (110, "Wages"), (-500, "50.00")],
        [(50, "05/03"), (110, "Bakery"), (-400, "20.00")],
        [(110, "Totals"), (-400, "20.00"), (-500, "50.00")],
    ]
    applied_template = build(tmp_path, [*_BALANCES, [], head, *lines])
    assert applied_template.statement.left_over == ()
    assert [check.is_met for check in applied_template.sum_checks] == [True, True, True]


def test_balances_beside_rows_are_no_part_of_them(tmp_path: Path) -> None:
    lines = [*_LEFT, *(shifted(cells) for cells in [])]
    lines += [[(x - 270 if x > 0 else x + 270, text) for x, text in cells] for cells in _RIGHT]
    lines[0] = lines[0] + [(400, "02/03"), (-540, "150.00")]
    lines[1] = lines[1] + [(400, "05/03"), (-540, "140.00")]
    applied_template = build(tmp_path, [*_BALANCES, [], [*_HEAD, (400, "Date"), (-540, "Balance")], *lines])
    assert read_rows(applied_template) == _ROWS


def test_summary_beside_rows_is_checked(tmp_path: Path) -> None:
    lines = [*_LEFT, *([(x - 270 if x > 0 else x + 270, text) for x, text in cells] for cells in _RIGHT)]
    lines[1] = lines[1] + [(350, "Opening balance"), (-540, "100.00")]
    lines[2] = lines[2] + [(350, "Closing balance"), (-540, "130.00")]
    applied_template = build(tmp_path, [[(50, "Riverside Bank")], _PERIOD, [], _HEAD, *lines])
    assert read_rows(applied_template) == _ROWS
    assert [check.name for check in applied_template.sum_checks if check.is_met] == ["closing_balance"]


def test_mark_before_the_text_gives_the_direction(tmp_path: Path) -> None:
    lines = [
        [(50, day), (95, "D" if amount.startswith("-") else "C"), (120, text), (-280, amount.lstrip("-"))]
        for day, text, amount in (
            ("02/03", "Wages", "50.00"),
            ("05/03", "Bakery", "-10.00"),
            ("07/03", "Fuel", "-10.00"),
        )
    ]
    head: Cells = [(50, "Date"), (95, "D/C"), (120, "Details"), (-280, "Amount")]
    applied_template = build(tmp_path, [*_BALANCES, [], head, *lines])
    assert [amount for *_, amount in read_rows(applied_template)] == ["50.00", "-10.00", "-10.00"]
    assert applied_template.template.find_column("direction") is not None


def test_cents_in_their_own_cells_are_joined(tmp_path: Path) -> None:
    def money(x: float, text: str) -> Cells:
        whole, cents = text.split(".")
        return [(-x, whole), (x + 9, cents)]

    lines: list[Cells] = [
        [(50, "02 Mar"), (110, "Wages"), *money(450, "1,050.25"), *money(540, "1,150.75")],
        [(50, "05 Mar"), (110, "Bakery"), *money(360, "10.50"), *money(540, "1,140.25")],
        [(50, "07 Mar"), (110, "Fuel 22"), *money(360, "20.00"), *money(540, "1,120.25")],
    ]
    head: Cells = [(50, "Date"), (110, "Details"), (330, "Paid out"), (420, "Paid in"), (500, "Balance")]
    first: Cells = [(110, "Balance brought forward"), *money(540, "100.50")]
    applied_template = build(tmp_path, [[(50, "Riverside Bank")], _PERIOD, [], head, first, *lines])
    assert [amount for *_, amount in read_rows(applied_template)] == ["1050.25", "-10.50", "-20.00"]
    assert str(applied_template.statement.transactions[0].balance) == "1150.75"


def test_row_continues_on_the_next_page(tmp_path: Path) -> None:
    first_page = [
        *_BALANCES,
        [],
        _HEAD,
        *_LEFT,
        *([(x - 270 if x > 0 else x + 270, text) for x, text in cells] for cells in _RIGHT[:2]),
    ]
    second_page: list[Cells] = [_HEAD, [(95, "Second Hand Shop")], row("20/03", "Rail", "-15.00")]
    applied_template = build(tmp_path, first_page, second_page)
    rows = applied_template.statement.transactions
    assert [(one.description, one.page) for one in rows[-2:]] == [("Books Second Hand Shop", 1), ("Rail", 2)]
    assert applied_template.statement.left_over == ()


def test_text_printed_sideways_is_read(tmp_path: Path) -> None:
    lines = [*_LEFT, *([(x - 270 if x > 0 else x + 270, text) for x, text in cells] for cells in _RIGHT)]
    for turn in (90, 270):
        assert read_rows(build(tmp_path, [*_BALANCES, [], _HEAD, *lines], turn=turn)) == _ROWS


def test_receipt_numbers_are_no_part_of_a_description(tmp_path: Path) -> None:
    texts = [
        ("02/03", "Wages", "7001.25", "50.00"),
        ("05/03", "Bakery", "88.10", "-10.00"),
        ("07/03", "Fuel", "4.33", "-10.00"),
    ]
    lines: list[Cells] = [
        [(50, day), (110, text), (-350, number), (-540, amount.replace(".", ","))]
        for day, text, number, amount in texts
    ]
    balances = [pair("Opening balance", "100,00"), pair("Closing balance", "130,00")]
    head: Cells = [(50, "Date"), (110, "Details"), (-350, "Receipt"), (-540, "Amount")]
    applied_template = build(tmp_path, [[(50, "Riverside Bank")], _PERIOD, *balances, [], head, *lines])
    assert [description for _, description, _ in read_rows(applied_template)] == ["Wages", "Bakery", "Fuel"]


def test_sums_of_a_page_are_checked(tmp_path: Path) -> None:
    head: Cells = [(50, "Date"), (110, "Details"), (-400, "Debit"), (-500, "Credit")]
    pages: list[list[Cells]] = [
        [*_BALANCES, [], head, [(50, "02/03"), (110, "Wages"), (-500, "50.00")], [(50, "05/03"), (110, "Bakery"), (-400, "10.00")],
         [(110, "Page total"), (-400, "10.00"), (-500, "50.00")]],
        [head, [(50, "07/03"), (110, "Fuel"), (-400, "8.00")], [(50, "09/03"), (110, "Rail"), (-400, "2.00")],
         [(110, "Page total"), (-400, "10.00")]],
    ]  # fmt: skip
    checks = build(tmp_path, *pages).sum_checks
    assert [check.is_met for check in checks if check.name == "subtotal"] == [True, True, True]


def test_amounts_of_many_countries_are_parsed() -> None:
    assert [
        parse_amount(text, separator)
        for text, separator in (
            ("12,34,567.89", "."),
            ("1’234.50", "."),
            ("-R$ 1.234,50", ","),
            ("(5.00) AUD", "."),
            ("1 234 50", " "),
        )
    ] == [  # type: ignore[comparison-overlap]
        parse_amount(text, ".") for text in ("1234567.89", "1234.50", "-1234.50", "(5.00)", "1234.50")
    ]
    assert parse_amount("(" + " " * 100_000 + "x", ".") is None
