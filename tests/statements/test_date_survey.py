"""How dates are read: one order of day and month, and the year of the period."""

from __future__ import annotations

from pathlib import Path

import pytest
from statements.plain_pages import build_from_lines, row

from evalkit.errors import UsageError

_BANK, _TITLES = "Elm Bank Current Account", row("Date", "Description", "Amount")


def _rows(*days: str) -> list[list[tuple[float, str]]]:
    return [row(day, f"SHOP {number}", "-20.00") for number, day in enumerate(days)]


@pytest.mark.parametrize(
    ("head", "days", "dates"),
    [
        ("1 March 2024 to 31 March 2024", ("02/03/2024", "04/03/2024"), ["2024-03-02", "2024-03-04"]),
        ("March 1, 2024 to March 31, 2024", ("03/02/2024", "03/04/2024"), ["2024-03-02", "2024-03-04"]),
        ("Statement date: 01/08/2023", ("02/07", "03/07", "20/07"), ["2023-07-02", "2023-07-03", "2023-07-20"]),
        ("Statement date: 12/03/2024   Payment due 05/04/2024", ("02/03", "10/03"), ["2024-03-02", "2024-03-10"]),
        ("Period 12/12/2023 - 11/01/2024", ("29/12", "02/01"), ["2023-12-29", "2024-01-02"]),
        ("Statement date 05.03.2024", ("27.02.", "29.02.", "02.03."), ["2024-02-27", "2024-02-29", "2024-03-02"]),
        ("Kontoauszug Juli 2024", ("02.07.", "14.07."), ["2024-07-02", "2024-07-14"]),
    ],
)
def test_all_dates_have_one_order_and_their_year(
    head: str, days: tuple[str, ...], dates: list[str], tmp_path: Path
) -> None:
    built = build_from_lines([_BANK, head, _TITLES, *_rows(*days)], tmp_path)
    assert [transaction.date for transaction in built.statement.transactions] == dates
    assert built.template.dates.alternative_formats == ()


def test_both_orders_are_named_if_both_fit(tmp_path: Path) -> None:
    built = build_from_lines([_BANK, _TITLES, *_rows("02/03/2024", "04/03/2024", "10/03/2024")], tmp_path)
    dates = built.template.dates
    assert {*dates.formats, *dates.alternative_formats} == {"%d/%m/%Y", "%m/%d/%Y"}


def test_due_date_below_its_label_is_no_period(tmp_path: Path) -> None:
    head = [[(50.0, "Statement date"), (200.0, "Payment due date")], [(50.0, "12/03/2024"), (200.0, "05/04/2024")]]
    built = build_from_lines([_BANK, *head, _TITLES, *_rows("02/03", "10/03")], tmp_path)
    assert (built.statement.period_start, built.statement.period_end) == (None, "2024-03-12")


def test_booking_date_is_read_beside_a_value_date(tmp_path: Path) -> None:
    titles = [(50.0, "Value date"), (120.0, "Booking date"), (220.0, "Description"), (450.0, "Amount")]
    rows = [
        [(50.0, f"{day + 1:02}/07/2024"), (120.0, f"{day:02}/07/2024"), (220.0, "SHOP"), (450.0, "-20.00")]
        for day in (2, 14, 20)
    ]
    built = build_from_lines([_BANK, "Period 01/07/2024 to 31/07/2024", titles, *rows], tmp_path)
    assert [transaction.date for transaction in built.statement.transactions] == [
        "2024-07-02",
        "2024-07-14",
        "2024-07-20",
    ]


@pytest.mark.parametrize(
    ("order", "days", "year", "dates"),
    [
        ("oldest_first", ("02/27", "02/29", "03/13"), 2024, ["2024-02-27", "2024-02-29", "2024-03-13"]),
        ("oldest_first", ("12/28", "12/31", "01/02"), 2024, ["2023-12-28", "2023-12-31", "2024-01-02"]),
        ("newest_first", ("01/14", "12/31", "12/28"), 2024, ["2024-01-14", "2023-12-31", "2023-12-28"]),
    ],
)
def test_a_person_gives_the_year_of_the_last_row(
    order: str, days: tuple[str, ...], year: int, dates: list[str], tmp_path: Path
) -> None:
    built = build_from_lines([_BANK, _TITLES, *_rows(*days)], tmp_path)
    rows = built.template.rows.model_copy(update={"order": order})
    read = built.apply_other_template(built.template.model_copy(update={"rows": rows}))
    assert all(transaction.is_year_open for transaction in read.statement.transactions)
    assert [transaction.date for transaction in read.complete_years(year).statement.transactions] == dates


def test_a_year_that_no_row_can_have_is_refused(tmp_path: Path) -> None:
    printed = build_from_lines([_BANK, _TITLES, *_rows("02/13/2024", "02/14/2024")], tmp_path)
    leap = build_from_lines([_BANK, _TITLES, *_rows("02/13", "02/29")], tmp_path)
    for built, year in ((printed, 2024), (leap, 2023)):
        with pytest.raises(UsageError, match=f"can be of {year}"):
            built.complete_years(year)
