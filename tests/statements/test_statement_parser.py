"""A template reads a statement; every line of a region is a row's, is known, or is left over with a reason."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from builders import document
from hypothesis import given
from hypothesis import strategies as st

from evalkit.documents.bundle import DocumentBundle
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.statement_parser import ParsedStatement, Transaction, derive_amounts_from_balances
from evalkit.statements.statement_template import StatementTemplate
from evalkit.statements.text_lines import group_words_into_lines

#: A character of the builder's pages is so wide; the first stands at 0.01.
_WIDE = 0.009


def _x(start: int, end: int) -> list[float]:
    return [0.01 + _WIDE * start, 0.01 + _WIDE * end]


BASE: dict[str, Any] = {
    "template_id": "t",
    "identity": {"bank": "B"},
    "region": [{"box": [0, 0, 1, 1]}],
    "column": [
        {"name": "date", "x": _x(0, 11), "title": "Date"},
        {"name": "description", "x": _x(11, 38), "title": "Details"},
        {"name": "amount", "x": _x(38, 52), "title": "Amount"},
        {"name": "balance", "x": _x(52, 68), "title": "Balance"},
    ],
    "dates": {"formats": ["%m/%d/%Y"]},
}


def row(day: str = "", text: str = "", amount: str = "", balance: str = "") -> str:
    return f"{day:<11}{text:<27}{amount:>13} {balance:>15}".rstrip()


def template(**parts: Any) -> StatementTemplate:
    return StatementTemplate.model_validate({**BASE, **parts})


def read(*pages: str, **parts: Any) -> ParsedStatement:
    return AppliedTemplate.create(template(**parts), document(*pages)).statement


def amounts(statement: ParsedStatement) -> list[str]:
    return [str(one.amount) for one in statement.transactions]


def reasons(statement: ParsedStatement) -> list[str]:
    return [one.reason for one in statement.left_over]


@pytest.mark.parametrize(
    ("written", "signs", "amount"),
    [
        ("-12.50", {}, "-12.50"),
        ("12.50", {}, "12.50"),
        ("12.50-", {}, "-12.50"),
        ("(12.50)", {}, "-12.50"),
        ("12.50 DR", {}, "-12.50"),
        ("12.50 CR", {}, "12.50"),
        ("+12.50", {}, "12.50"),
        ("$1,012.50", {}, "1012.50"),
        ("12.50", {"unmarked": "withdrawal"}, "-12.50"),
        ("12.50 CR", {"unmarked": "withdrawal"}, "12.50"),
        ("-12.50", {"deposit": ["minus"], "withdrawal": ["plus"], "unmarked": "withdrawal"}, "12.50"),
        ("1.012,50-", {"decimal": ","}, "-1012.50"),
        ("12", {"whole": True}, "12.00"),
    ],
)
def test_signs(written: str, signs: dict[str, Any], amount: str) -> None:
    assert amounts(read(row("01/02/2024", "SHOP", written), amounts=signs)) == [amount]


def test_debit_and_credit_columns() -> None:
    columns = [*BASE["column"][:2], {**BASE["column"][2], "name": "debit"}, {**BASE["column"][3], "name": "credit"}]
    page = "\n".join([row("01/02/2024", "SHOP", "12.50"), row("01/03/2024", "PAY", "", "99.00")])
    assert amounts(read(page, column=columns)) == ["-12.50", "99.00"]


def test_a_transaction_has_its_page_boxes_and_balance() -> None:
    made = read("nothing", "\n".join([row("01/02/2024", "SHOP", "-1.00", "9.00"), row("", "IN TOWN")]))
    (one,) = made.transactions
    assert (one.date, one.description, one.amount, one.balance, one.page) == (
        "2024-01-02", "SHOP IN TOWN", Decimal("-1.00"), Decimal("9.00"), 2,
    )  # fmt: skip
    assert len(one.boxes) == 2
    assert one.boxes[0][1] < one.boxes[1][1]


def test_continuation_lines_need_proximity_and_the_template() -> None:
    page = "\n".join([row("01/02/2024", "SHOP", "-1.00"), row("", "IN TOWN")])
    alone = read(page, rows={"continuation": "none"})
    assert alone.transactions[0].description == "SHOP"
    assert reasons(alone) == ["it belongs to no transaction"]
    assert reasons(read(page, rows={"gap": 1.0})) == ["it belongs to no transaction"]
    assert reasons(read(page, rows={"gap": 2.0})) == []


def test_the_amount_may_stand_in_a_later_line() -> None:
    page = "\n".join([row("01/02/2024", "SHOP"), row("", "IN TOWN", "-1.00")])
    made = read(page)
    assert [(one.description, str(one.amount)) for one in made.transactions] == [("SHOP IN TOWN", "-1.00")]


def test_one_date_for_several_rows() -> None:
    page = "\n".join([row("01/02/2024", "A", "-1.00"), row("", "B", "-2.00"), row("01/03/2024", "C", "-3.00")])
    assert reasons(read(page)) == ["it has an amount and no date"]
    made = read(page, rows={"date_once": True})
    assert [one.date for one in made.transactions] == ["2024-01-02", "2024-01-02", "2024-01-03"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (row("99/99/2024", "SHOP", "-1.00"), "its date cannot be read"),
        (row("01/02/2024", "SHOP"), "it has a date and no amount"),
        (row("", "Thank you for banking"), "it belongs to no transaction"),
        (row("01/02/2024", "9.00 01/03/2024", "-1.00"), "it has dates behind its amounts"),
        (row("01/02/2024", "", "-1.00"), "it does not say what it was"),
        (row("01/02/2024", "SHOP", "-1.00", "1.00") + "        NOTE", "it stands in no column"),
    ],
)
def test_what_cannot_be_read_is_left_over(line: str, reason: str) -> None:
    made = read(line)
    assert reasons(made) == [reason]
    assert made.left_over[0].page == 1


def test_a_row_outside_of_the_regions_is_told() -> None:
    page = "\n".join([row("01/02/2024", "A", "-1.00"), row("01/03/2024", "B", "-2.00"), "A letter of 01/03/2024"])
    made = read(page, region=[{"box": [0, 0, 1, 0.075]}])
    assert amounts(made) == ["-1.00"]
    assert [one.text for one in made.outside] == ["01/03/2024 B -2.00"]
    assert read(page.replace("B", " "), region=[{"box": [0, 0, 1, 0.075]}]).outside == ()  # a list of balances


def test_table_ends_until_a_header_or_the_next_page() -> None:
    head = "Date       Details                          Amount           Balance"
    page = "\n".join(
        [
            row("01/02/2024", "A", "-1.00"),
            "Thank you",
            row("", "NOTE"),
            head,
            row("01/03/2024", "B", "-2.00"),
            "Thank you",
        ]
    )
    made = read(page, row("01/04/2024", "C", "-3.00"), rows={"ends": ["thank you"]})
    assert amounts(made) == ["-1.00", "-2.00", "-3.00"]
    assert made.left_over == made.outside == ()
    late = read("\n".join(["Thank you", row("01/02/2024", "A", "-1.00")]), rows={"ends": ["thank you"]})
    assert (amounts(late), [one.text for one in late.outside]) == ([], ["01/02/2024 A -1.00"])


def test_sections_say_which_way_the_money_went() -> None:
    sections = [{"heading": "Deposits", "direction": "deposit"}, {"heading": "Payments", "direction": "withdrawal"}]
    lines = [
        row("01/01/2024", "X", "9.00"),
        "Deposits",
        row("01/02/2024", "A", "1.00"),
        "Payments made",
        row("01/03/2024", "B", "2.00"),
    ]
    made = read("\n".join(lines), amounts={"unmarked": "section"}, rows={"section": sections})
    assert amounts(made) == ["1.00", "-2.00"]
    assert [one.section for one in made.transactions] == ["Deposits", "Payments made"]
    assert reasons(made) == ["no heading says which way the money went"]


def test_accounts_follow_one_another_over_pages() -> None:
    accounts = [r"Checking \d+", r"Savings \d+"]
    first = "\n".join(["Checking 1234", "Beginning balance  5.00", row("01/02/2024", "A", "1.00")])
    second = "\n".join(
        ["Checking 1234 (continued)", row("01/03/2024", "B", "2.00"), "Savings 9876", "Beginning balance  7.00"]
    )
    made = read(first, second, rows={"accounts": accounts}, reconciliation={"opening": ["beginning balance"]})
    assert [one.account for one in made.transactions] == ["Checking 1234", "Checking 1234"]
    assert [(one.account, one.value) for one in made.sums] == [
        ("Checking 1234", Decimal("5.00")),
        ("Savings 9876", Decimal("7.00")),
    ]


def test_furniture_headers_and_balance_rows_are_no_transactions() -> None:
    lines = [
        "Date       Details                          Amount           Balance",
        row("01/01/2024", "Opening balance", "", "10.00"),
        row("", "Balance brought forward", "", "10.00"),
        row("01/02/2024", "A", "1.00", "11.00"),
    ]
    made = read(
        "\n".join(lines),
        rows={"furniture": ["balance brought forward"]},
        reconciliation={"opening": ["opening balance"]},
    )
    assert amounts(made) == ["1.00"]
    assert [(one.kind, one.value) for one in made.sums] == [
        ("opening", Decimal("10.00")),
        ("carried", Decimal("10.00")),
    ]
    assert made.left_over == ()


@pytest.mark.parametrize(
    ("head", "dates", "expected"),
    [
        ("Statement period: 12/10/2023 - 01/09/2024", {"period": ["statement period"]}, ["2023-12-28", "2024-01-03"]),
        ("Statement date 01/09/2024", {"period": ["statement date"]}, ["2023-12-28", "2024-01-03"]),
        ("Printed 01/09/2024", {}, ["2023-12-28", "2024-01-03"]),
        ("Statement period: 12/10 - 01/09/2024", {"period": ["statement period"]}, ["2023-12-28", "2024-01-03"]),
    ],
)
def test_the_year_is_the_periods(head: str, dates: dict[str, Any], expected: list[str]) -> None:
    page = "\n".join([head, row("12/28", "A", "1.00"), row("01/03", "B", "2.00")])
    forms = {"formats": ["%m/%d"], "period_formats": ["%m/%d/%Y", "%m/%d"], **dates}
    assert [one.date for one in read(page, dates=forms).transactions] == expected


@pytest.mark.parametrize("dates", [{}, {"period": ["Statement period"]}])
def test_a_blank_page_holds_nothing(dates: dict[str, Any]) -> None:
    head, rows = "Statement period 01/01/2024 to 01/31/2024", row("01/02/2024", "SHOP", "-1.00")
    found = read("", f"{head}\n{rows}", "", dates={"formats": ["%m/%d/%Y"], **dates})
    assert (found.period_start, found.period_end) == ("2024-01-01", "2024-01-31") if dates else (None, "2024-01-02")
    assert amounts(found) == ["-1.00"]


def test_without_a_year_nothing_is_guessed() -> None:
    made = read(row("12/28", "A", "1.00"), dates={"formats": ["%m/%d"]})
    assert [(one.date, one.is_year_open) for one in made.transactions] == [("--12-28", True)]


def test_a_text_that_reaches_into_the_next_column_stays_a_text() -> None:
    made = read(f"{'01/02/2024':<11}{'A LONG NAME OF A PAYEE AND MORE OF IT':<38}-1.00")
    assert [(one.description, str(one.amount)) for one in made.transactions] == [
        ("A LONG NAME OF A PAYEE AND MORE OF IT", "-1.00")
    ]


_CELLS = st.text("ABC 0123456789./-,$()", max_size=24)


@given(
    st.lists(
        st.builds(
            row,
            st.sampled_from(["", "01/02/2024", "9/9", "x"]),
            _CELLS,
            _CELLS.map(lambda one: one[:12]),
            _CELLS.map(lambda one: one[:14]),
        ),
        max_size=12,
    )
)
def test_no_word_is_lost(lines: list[str]) -> None:
    """Every word of the page is in a transaction's boxes, in a sum's, or in what was left over."""
    bundle: DocumentBundle = document("\n".join(lines) or "x")
    made = AppliedTemplate.create(template(), bundle).statement
    boxes = [box for one in made.transactions for box in one.boxes] + [one.box for one in (*made.sums, *made.left_over)]
    for line in group_words_into_lines(bundle.page(1)):
        for word in line.words:
            assert any(
                box[0] <= word.center_x <= box[2] and box[1] <= word.deskewed_center_y <= box[3] for box in boxes
            ), word.text


def test_a_row_without_an_amount_keeps_its_continuation() -> None:
    made = AppliedTemplate.create(
        template(), document("\n".join([row("01/02/2024", "SHOP", "", ""), row("", "MORE", "", "")]))
    ).statement
    assert "MORE" in " ".join(one.text for one in made.left_over)


def derive(*rows: tuple[int, int | None], is_newest_first: bool = False) -> list[Decimal | None]:
    transactions = [
        Transaction(date="2024-01-02", description="", amount=Decimal(amount), balance=balance, page=1, boxes=())
        for amount, balance in rows
    ]
    opening = {("", "opening"): Decimal(500)}
    return derive_amounts_from_balances(transactions, set(range(len(rows))), opening, is_newest_first=is_newest_first)


def test_direction_follows_from_the_next_balance() -> None:
    assert derive((20, 480), (100, 580)) == [-20, 100]
    assert derive((100, 580), (20, 480), is_newest_first=True) == [100, -20]


def test_several_amounts_share_a_balance() -> None:
    assert derive((20, None), (100, 580), (30, None), (31, 519)) == [-20, 100, -30, -31]


def test_direction_stays_open_if_several_fit() -> None:
    assert derive((20, None), (20, 500)) == [None, None]
    assert derive((20, 490)) == [None]


def test_a_line_with_a_balance_alone_is_no_transaction() -> None:
    page = "\n".join(
        [
            row("01/02/2024", "ZORVIK", "", "10.00"), row("01/02/2024", "SHOP", "-1.00", "9.00"),
            row("", "DORVIK", "", "9.00"), row("", "LIMIT", "", "5.00"),
        ]
    )  # fmt: skip
    made = read(page)
    assert amounts(made) == ["-1.00"]
    assert [(printed.kind, printed.value, printed.after) for printed in made.sums] == [
        ("carried", Decimal("10.00"), 0), ("carried", Decimal("9.00"), 1),
    ]  # fmt: skip
    assert [left.text for left in made.left_over] == ["LIMIT 5.00"]


def test_a_row_whose_amount_is_not_read_is_no_balance() -> None:
    columns = [{**column, "name": "other"} if column["name"] == "amount" else column for column in BASE["column"]]
    columns.append({"name": "amount", "x": _x(68, 80)})
    lines = [row("01/02/2024", "SHOP", "5.00", "95.00"), row("01/03/2024", "Balance", "", "95.00")]
    found = read("\n".join(lines), column=columns)
    assert [str(printed.value) for printed in found.sums] == ["95.00"]
    assert reasons(found) == ["it has a date and no amount"]
