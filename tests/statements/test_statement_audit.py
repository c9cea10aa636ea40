"""What the pages of a statement show by themselves: directions, dates, columns and sums, without any template."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from builders import document, page

from evalkit.statements.audit_directions import prove_directions
from evalkit.statements.statement_audit import StatementAudit, audit_lines
from evalkit.statements.text_lines import group_words_into_lines

_UNMARKED = """
Date        Description                Amount     Balance
01 Mar      Balance brought forward               100.00
02 Mar      SHOP A                     12.00       88.00
05 Mar      SALARY                     50.00      138.00
14 Mar      SHOP C                      7.50      130.50
"""
_CARD = """Example Card   Credit card
Statement date 30 April 2024
Date        Details              Amount
"""
_DIRECTIONS = {
    "the running balance of an account": ("Example Bank   Current account" + _UNMARKED, "-+-"),
    "a running balance held or owed": ("Example Bank" + _UNMARKED, "000"),
    "letters in a column": (
        """Voorbeeld Bank   Rekeningafschrift
Datum       Omschrijving               Bedrag    Af/Bij
02-03-2024  WINKEL A                   12,00     Af
05-03-2024  SALARIS                    1.250,00  Bij
""",
        "-+",
    ),
    "charges on a card that nothing marks": (_CARD + """02 Apr      SHOP                  10.00
15 Apr      PAYMENT THANK YOU     50.00
""", "00"),
    "brackets on a card, by the rows' words": (_CARD + """02 Apr      SHOP                  10.00
15 Apr      PAYMENT BY INTERNET  (50.00)
""", "-+"),
    "plus and minus on a card, by its balances": ("Previous balance   100.00\n" + _CARD + """02 Apr      SHOP                 +10.00
15 Apr      TRANSFER             -50.00
New balance   60.00
""", "-+"),
    "unmarked amounts above a line that counts them, which alone has a mark": ("""Example Depot
Statement date 30 April 2024
Date        Entry                Amount
02 Apr      SHOP                  10.00
15 Apr      RETURN                50.00
21 Apr      TOLL                   3.00
3 items                           37.00-
""", "000"),
    "marks on entries without a date of their own": ("""Example Depot
Statement date 30 April 2024
Date        Entry                Amount
02 Apr      SHOP                  10.00
            RETURN                50.00-
21 Apr      TOLL                   3.00
""", "+-+"),
    "balances against a title": ("""Example Bank   Current account
Statement date 30 April 2024
Date        Description     Paid out   Paid out   Balance
                                                   100.00
02 Apr      SHOP A            12.00                 88.00
05 Apr      SALARY                       50.00     138.00
14 Apr      SHOP C             7.50                130.50
17 Apr      SHOP D             2.50                128.00
""", "-+--"),
    "a side of whose rows some have a balance": ("""Example Bank   Current account
Statement date 30 April 2024
Date        Description       Wumf       Zorg      Balance
01 Apr      RENT              10.00                100.00
02 Apr      SHOP A            12.00                 88.00
05 Apr      SALARY                       50.00     138.00
14 Apr      SHOP C             7.50
15 Apr      SHOP C             1.50                129.00
17 Apr      SHOP D             2.50                126.50
""", "--+---"),
    "amounts above and below the rows, of any label": ("""Example Bank   Current account
Statement date 30 April 2024
Zorvik                                   100.00
Date        Description       Wumf       Zorg
02 Apr      SHOP A            12.00
05 Apr      SALARY                       50.00
14 Apr      SHOP C             7.50
Dorvik                                   130.50
""", "-+-"),
    "headings": ("""Example Card   Credit card
Statement date 30 April 2024
Payments
15 Apr      RECEIVED             50.00
Purchases
02 Apr      SHOP                 10.00
""", "+-"),
    "a line that explains brackets": ("""Example Bank
Statement date 30 April 2024
Amounts in brackets are withdrawals
Date        Details              Amount
02 Apr      SHOP                 (10.00)
15 Apr      PAY                   50.00
""", "-+"),
}  # fmt: skip


def audit(text: str) -> StatementAudit:
    return audit_lines(tuple(group_words_into_lines(page) for page in document(text).pages))


def _spend(*amounts: int, balance: int) -> str:
    lines = ["Xqw         Zzv                  Kpl      Mrt"]
    for day, amount in enumerate(amounts, 1):
        balance += amount
        lines.append(f"{day:02} Mar 24   SHOP {chr(64 + day)}         {abs(amount)}.00      {balance}.00")
    return "\n".join(lines)


_SPENDING = (-10, -20, 90, -10, -20, -10, -10, -10, -5)
_DIRECTIONS |= {
    "in words that nobody knows, by what the rows take": (_spend(*_SPENDING, balance=200), "0-+------"),
    "in words that nobody knows, of a debt": (_spend(*(-each for each in _SPENDING), balance=200), "000000000"),
    "in words that nobody knows, of a loan": (_spend(*_SPENDING, balance=9000), "000000000"),
    "in words that nobody knows, of few rows": (_spend(*_SPENDING[:7], balance=200), "0000000"),
}


@pytest.mark.parametrize("name", _DIRECTIONS)
def test_directions_are_proven_or_stay_open(name: str) -> None:
    text, signs = _DIRECTIONS[name]
    directions = prove_directions(audit(text))
    assert "".join("-0+"[direction.sign + 1] for direction in directions) == signs


_DATED = """
Date        Description         Paid out    Paid in     Balance
02/02/2024  SHOP                 10.00                   90.00
05/02/2024  PAY                             10.00       100.00
"""


def test_two_orders_fit_without_a_period() -> None:
    assert audit("Example Bank" + _DATED).is_order_open


def test_a_period_decides_the_order_a_due_date_does_not() -> None:
    assert audit("Payment due date 02/05/2024" + _DATED).is_order_open
    assert audit("Statement period 1 February 2024 to 29 February 2024" + _DATED).orders == ("day first",)


def test_the_booking_date_is_found_by_its_title() -> None:
    rows = """Value date  Booking date  Details       Debit      Credit
03/04/2024  02/04/2024    SHOP          10.00
16/04/2024  15/04/2024    PAY                      50.00
"""
    assert audit(rows).booking_index == 1
    assert audit(rows.replace("Value date  Booking date", "Date        Value date  ")).booking_index == 0


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("1,23,456.78", "123456.78"),
        ("1'234.50", "1234.50"),
        ("1.234,50", "1234.50"),
        ("(12.00)", "12.00"),
        ("12,00-", "12.00"),
    ],
)
def test_amounts_are_read_in_every_style(printed: str, value: str) -> None:
    (row,) = audit(f"02/04/2024  SHOP          {printed}").rows
    assert row.amounts[0].value == Decimal(value)


def test_cents_in_a_cell_of_their_own_belong_to_the_amount() -> None:
    rows = audit("02/04/2024  SHOP            1,210   50\n15/04/2024  PAY               150   00").rows
    assert [row.amounts[0].value for row in rows] == [Decimal("1210.50"), Decimal("150.00")]


def test_rows_beside_each_other_are_apart() -> None:
    text = "04/02   CHECK 101   10.00      04/03   CHECK 104   11.00\n04/15   CHECK 102   50.00      04/16   CHECK 105   12.00"
    assert [(row.text, len(row.amounts)) for row in audit(text).rows] == [
        ("CHECK 101", 1), ("CHECK 104", 1), ("CHECK 102", 1), ("CHECK 105", 1),
    ]  # fmt: skip


def test_lines_of_endless_text_are_left_out() -> None:
    assert audit("1.1" * 33_000 + "\n" + "9 " * 2_000).rows == ()


def test_a_currency_behind_an_amount_is_no_word() -> None:
    audited = audit("02.01.2024   PIEKARNIA LIPA     -12,00 PLN\n04.01.2024   WYPLATA RYNEK      -50,00 EUR\n")
    assert [row.text for row in audited.rows] == ["PIEKARNIA LIPA", "WYPLATA RYNEK"]


def test_a_reference_below_a_row_is_no_row() -> None:
    audited = audit(
        "Data        Descrição           Documento     Montante\n"
        "02-01-2024  COMPRA CAIS         133.205,87       7,49 D\n"
        "04-01-2024  RENDA DO FORNO                     262,60 D\n"
        "            Entidade 20411      410.489,17\n"
    )
    movements = [audited.find_movement(row) for row in audited.rows]
    assert [str(each.value) for each in movements if each] == ["7.49", "262.6"]


def test_the_year_of_a_heading_is_no_account_number() -> None:
    audited = audit("Account history February 1, 2024 to February 29, 2024\n02/03/2024  SHOP   12.00\n")
    assert [row.account for row in audited.rows] == [""]


def test_a_date_in_a_description_parts_no_rows() -> None:
    audited = audit(
        "Date        Details              Paid out    Balance\n02 Mar 24   GROCERS                 10.00\n"
        "            ON 1 MAR\n            RENT                    20.00     70.00\n"
    )
    assert [row.text for row in audited.rows] == ["GROCERS", "RENT"]


@pytest.mark.parametrize(
    ("titles", "days", "index"),
    [
        ("Xqw          Zzv         Kpl      Mrt", ("05.03.2024   01.03.2024", "03.03.2024   04.03.2024", "19.03.2024   18.03.2024"), 1),
        ("Xqw          Zzv         Kpl      Mrt", ("05.03.2024   18.03.2024", "03.03.2024   04.03.2024", "19.03.2024   01.03.2024"), 1),
        ("Xqw          Zzv         Kpl      Mrt", ("01.03.2024   05.03.2024", "04.03.2024   03.03.2024", "18.03.2024   19.03.2024"), 0),
        ("Xqw          Zzv         Kpl      Mrt", ("01.03.2024   02.03.2024", "04.03.2024   04.03.2024", "18.03.2024   19.03.2024"), 0),
        ("Date         Value date  Kpl      Mrt", ("05.03.2024   01.03.2024", "03.03.2024   04.03.2024", "19.03.2024   18.03.2024"), 0),
    ],
)  # fmt: skip
def test_rows_are_in_the_order_of_booking(titles: str, days: tuple[str, ...], index: int) -> None:
    rows = "\n".join(f"{dates}   SHOP     -12,00" for dates in days)
    assert audit(f"{titles}\n{rows}\n").booking_index == index


def test_a_summary_without_words_is_no_row() -> None:
    rows = "02/03/2024  SHOP       10.00     90.00\n04/03/2024  SHOP       10.00     80.00\n"
    assert len(audit(rows + "            31  11     20.00     80.00\n").rows) == 2


def test_titles_without_a_gap_belong_to_their_columns() -> None:
    audited = audit(
        "Date        Details       Withdrawal Deposit Closing Balance\n"
        "02/03/2024  SHOP               10.00                   90.00\n"
        "04/03/2024  PAY                        50.00          140.00\n"
    )
    assert [column.role for column in audited.columns] == ["debit", "credit", "balance"]


def test_blanks_divide_dates_at_the_start_of_rows_only() -> None:
    audited = audit("07 01  VIR SALAIRE        08 01    785,94\n09 01  LOYER SALLE 12 03    10 01    231,44\n")
    assert [[day[:3] for day in row.dates] for row in audited.rows] == [[(7, 1, None)], [(9, 1, None)]]


def test_a_reference_in_a_description_is_no_account() -> None:
    audited = audit(
        "Account number 5120 4417\n02/03/2024   FLEET LEASE   10.00\n             A/C 00417\n04/03/2024   SHOP         12.00\n"
    )
    assert [row.account for row in audited.rows] == ["5120 4417", "5120 4417"]


def test_recognised_months_keep_their_letters() -> None:
    text = "Statement period 1  Jul 2023  -  31  Dec 2023\n08 Jul 2023  REPAYMENT    l35.81\n09 Aug 2023  REPAYMENT    12.00\n"
    recognised = page(1, text, status="ocr")
    audited = audit_lines((group_words_into_lines(recognised),))
    assert audited.find_period("day first") == (date(2023, 7, 1), date(2023, 12, 31))
    assert [(row.dates[0][:3], row.amounts[0].value) for row in audited.rows][:1] == [((8, 7, 2023), Decimal("135.81"))]


def test_dates_may_follow_descriptions() -> None:
    audited = audit(
        "Details of the entry    Date     Amount      Balance\n"
        "SERVICE FEE OF MAY      21 Dec    20.00Dr     80.00Dr\nSALARY FYNBOS TRADERS   22 Dec    30.00Cr     50.00Dr\n"
    )
    assert [(row.text, row.amounts[0].mark) for row in audited.rows] == [
        ("SERVICE FEE OF MAY", "out"), ("SALARY FYNBOS TRADERS", "in"),
    ]  # fmt: skip


def test_a_date_without_words_is_the_statements() -> None:
    rows = "5 Jan     SHOP      10.00\n9 Jan     PAY       50.00\n"
    assert audit("Pebble Bank\n                         31 January 2024\n" + rows).find_period("day first") is not None
    assert audit("Pebble Bank\n                  Opened 31 January 2024\n" + rows).find_period("day first") is None


def test_a_label_may_follow_its_amount() -> None:
    audited = audit("03.01.24  20,00   POS\n09.01.24  30,00   POS\n          950,00   SALDO FINALE\n")
    assert [(each.kind, each.amount.value) for each in audited.sums] == [("closing", Decimal("950.00"))]


@pytest.mark.parametrize(
    ("head", "last"),
    [
        ("Checking January 31, 2024 Mr Ames", date(2024, 1, 31)),
        ("Entries of January 2024", date(2024, 1, 31)),
        ("Leaf 01/2024", date(2024, 1, 31)),
    ],
)
def test_any_date_of_the_head_gives_the_year(head: str, last: date) -> None:
    period = audit(f"{head}\n5 Jan     SHOP      10.00\n9 Jan     PAY       50.00\n").find_period("day first")
    assert period is not None
    assert period[1] == last


def test_dates_of_several_years_give_no_year() -> None:
    head = "Ames 31 January 2024\nBarn 2 March 2019\n"
    assert audit(f"{head}5 Jan     SHOP      10.00\n9 Jan     PAY       50.00\n").find_period("day first") is None


def test_marks_may_be_in_brackets() -> None:
    audited = audit("03.01.24  POS        20.00 (Dr)\n09.01.24  PAY        30.00 (CR)\n")
    assert [row.amounts[0].mark for row in audited.rows] == ["out", "in"]


def test_a_balance_above_the_rows_hides_no_titles() -> None:
    audited = audit(
        "Date      Text       Debit      Credit\n          Zorvik     90.00\n03.01.24  POS        20.00\n09.01.24  PAY                   30.00\n"
    )
    assert [column.role for column in audited.columns] == ["debit", "credit"]


def test_the_banks_name_heads_no_rows() -> None:
    audited = audit(
        "Pebble Purchases\n\n\n\nDate      Text       Amount\n03.01.24  POS        20.00\n09.01.24  PAY        30.00\n"
    )
    assert [direction.sign for direction in prove_directions(audited)] == [0, 0]


def test_totals_prove_the_sides_of_columns_without_titles() -> None:
    audited = audit(
        "Pebble\nTotal deposits  30.00\n\n03.01.24  POS        20.00\n04.01.24  POS        25.00\n09.01.24  PAY                   30.00\n"
    )
    assert [direction.sign for direction in prove_directions(audited)] == [-1, -1, 1]


def test_a_title_beside_another_column_is_not_its_own() -> None:
    audited = audit(
        "Data        Histórico     Documento    Valor\n03.01.24    POS           7.150.000    20,00\n09.01.24    PAY           7.150.001    30,00\n"
    )
    assert [column.title for column in audited.columns] == ["Valor"]


def test_a_period_may_end_in_the_next_line() -> None:
    rows = "5 Jan     SHOP      10.00\n9 Feb     PAY       50.00\n"
    period = audit(f"Statement from 1 January 2023\n            to 31 March 2023\n{rows}").find_period("day first")
    assert period == (date(2023, 1, 1), date(2023, 3, 31))
    rates = "From         To\n1 May 2023   8 May 2023\n"
    assert audit(f"Statement date 31 March 2023\n{rows}{rates}").find_period("day first") != (
        date(2023, 5, 1),
        date(2023, 5, 8),
    )


def test_a_year_of_two_digits_may_be_first() -> None:
    rows = "24/06/02  SHOP      10.00\n24/06/25  PAY       50.00\n"
    assert audit(f"Period 2024/06/01 - 2024/06/30\n{rows}").orders == ("year first",)
    assert audit("Period 01/06/24 - 30/06/24\n02/06/24  SHOP      10.00\n").orders == ("day first",)


def test_a_sort_code_in_a_description_is_no_date() -> None:
    rows = "20/01/24  TO 31-22-33   10.00\n25/01/24  PAY           50.00\n"
    assert audit(f"Period 1 January 2024 to 31 January 2024\n{rows}").orders == ("day first",)


def test_a_last_row_without_a_date_follows_from_its_balance() -> None:
    rows = """Date        Description         Paid out    Paid in     Balance
02/02/2024  SHOP                 10.00                   90.00
05/02/2024  PAY                             10.00       100.00
09/02/2024  SHOP                 20.00                   80.00
            FEE                   {fee}                   77.00
"""
    assert [len(audit(rows.format(fee=fee)).rows) for fee in ("3.00", "4.00")] == [4, 3]


def test_daily_balances_are_no_closing_balance() -> None:
    head = "".join(f"0{day}.01.24  POS        20.00\n" for day in range(1, 6))
    assert [each.kind for each in audit(f"{head}Ending balance   50.00\n").sums] == ["closing"]
    assert [each.kind for each in audit(f"{head}Daily ending balance   50.00\n").sums] == ["other"]


def test_one_of_two_currencies_may_have_no_cents() -> None:
    rows = audit("""Example Bank
JPY account 0001234
Date        Description               Amount     Balance
02/04/2024  SHOP                       7,246     301,607
04/04/2024  PAY                       66,827     368,434
06/04/2024  ATM                          500     367,934
USD account 0001235
Date        Description               Amount     Balance
06/04/2024  SCHOOL                    216.37    4,515.65
""").rows
    assert [str(row.amounts[0].value) for row in rows] == ["7246", "66827", "500", "216.37"]


def test_a_reference_title_hides_no_only_amounts() -> None:
    found = audit("""Example Bank
Date        Description      Document Value     Saldo
02/04/2024  SHOP                      10.00      90.00
04/04/2024  PAY                       20.00     110.00
""")
    movements = map(found.find_movement, found.rows)
    assert [movement and movement.value for movement in movements] == [Decimal(10), Decimal(20)]
