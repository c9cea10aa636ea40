"""Layouts that real banks print, drawn line by line: summaries in parts, lists of daily balances, balances as rows."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest
from builders import document

from evalkit.documents.readers import read_document
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.audit_comparison import (
    find_missed_rows,
    find_unused_sums,
    find_wrong_dates,
    find_wrong_descriptions,
    find_wrong_directions,
)
from evalkit.statements.template_builder import build_draft_template

Cells = list[tuple[float, str]]
"""x in points and text; a negative x is the right edge."""


def drawn(folder: Path, lines: list[str | Cells], size: float = 9) -> AppliedTemplate:
    document = pymupdf.open()
    page, y = document.new_page(width=612, height=792), 60.0
    for line in lines:
        for x, text in [(50.0, line)] if isinstance(line, str) else line:
            left = x if x > 0 else -x - pymupdf.get_text_length(text, fontsize=size)
            page.insert_text((left, y), text, fontsize=size)
        y += 14 if line else 8
    path = folder / "statement.pdf"
    document.save(path)
    return build_draft_template(read_document(path, doc_id="statement", processing_timestamp=""))


def row(day: str, text: str, *amounts: tuple[float, str]) -> Cells:
    return [(50, day), (110, text), *amounts]


def labelled(label: str, value: str, x: float = -400) -> Cells:
    return [(50, label), (x, value)]


SUMMARY_IN_PARTS: list[str | Cells] = [
    "Harbor Bank, N.A.", "October 05, 2023 through November 06, 2023", "Account Number:  000000123456789", "",
    "CHECKING SUMMARY", [(300, "AMOUNT")], labelled("Beginning Balance", "$1,000.00"),
    labelled("Deposits and Additions", "2,500.00"), labelled("ATM & Debit Card Withdrawals", "-150.25"),
    labelled("Electronic Withdrawals", "-600.00"), labelled("Ending Balance", "$2,749.75"), "", "TRANSACTION DETAIL",
    [(50, "DATE"), (110, "DESCRIPTION"), (-480, "AMOUNT"), (-560, "BALANCE")],
    [(110, "Beginning Balance"), (-560, "$1,000.00")],
    row("10/06", "Acme Payroll PPD ID: 123", (-480, "2,500.00"), (-560, "3,500.00")),
    row("10/09", "Card Purchase 10/08 Coffee Shop Card 1234", (-480, "-50.25"), (-560, "3,449.75")),
    row("10/12", "ATM Withdrawal 10/12 1st Ave", (-480, "-100.00"), (-560, "3,349.75")),
    row("10/30", "Rent LLC Web Pmts PPD", (-480, "-600.00"), (-560, "2,749.75")),
    [(110, "Ending Balance"), (-560, "$2,749.75")], "", "IN CASE OF ERRORS OR QUESTIONS call us.",
]  # fmt: skip
_DEBITS_AND_CREDITS: Cells = [(50, "Date"), (110, "Details"), (-400, "Debit"), (-480, "Credit"), (-560, "Balance")]
_HEAD: Cells = [(50, "Date"), (110, "Description"), (-560, "Amount")]
_HEAD_WITH_BALANCE: Cells = [(50, "Date"), (110, "Description"), (-480, "Amount"), (-560, "Balance")]
DAILY_BALANCES: list[str | Cells] = [
    "Bank of Meadows, N.A.", "for March 1, 2024 to March 31, 2024", "", "Account summary",
    labelled("Beginning balance on March 1, 2024", "$500.00"), labelled("Deposits and other additions", "1,200.00"),
    labelled("Withdrawals and other subtractions", "-300.00"), labelled("Checks", "-75.00"),
    labelled("Service fees", "-12.00"), labelled("Ending balance on March 31, 2024", "$1,313.00"), "",
    "Deposits and other additions", _HEAD, row("03/04/24", "PAYROLL ID:99", (-560, "1,000.00")),
    row("03/18/24", "Payment from JO", (-560, "200.00")), labelled("Total deposits and other additions", "$1,200.00", -560), "",
    "Withdrawals and other subtractions", _HEAD, row("03/05/24", "ELECTRIC CO BILL", (-560, "-100.00")),
    row("03/09/24", "GROCERY #12 03/08 PURCHASE", (-560, "-150.00")), row("03/20/24", "WATER", (-560, "-50.00")),
    labelled("Total withdrawals and other subtractions", "-$300.00", -560), "",
    "Checks", [(50, "Date"), (110, "Check #"), (-560, "Amount")], row("03/11/24", "1001", (-560, "-75.00")),
    labelled("Total checks", "-$75.00", -560), "", "Service fees", _HEAD,
    row("03/29/24", "Monthly Maintenance Fee", (-560, "-12.00")), labelled("Total service fees", "-$12.00", -560), "",
    "Daily ledger balances",
    [(50, "Date"), (-200, "Balance ($)"), (250, "Date"), (-400, "Balance ($)"), (430, "Date"), (-560, "Balance($)")],
    [(50, "03/01"), (-200, "500.00"), (250, "03/09"), (-400, "1,250.00"), (430, "03/20"), (-560, "1,325.00")],
    [(50, "03/04"), (-200, "1,500.00"), (250, "03/11"), (-400, "1,175.00"), (430, "03/29"), (-560, "1,313.00")],
]  # fmt: skip
BALANCES_AS_ROWS: list[str | Cells] = [
    "Meadow Bank UK plc", "Your Statement", "1 January to 31 January 2024", "Account Summary",
    labelled("Opening Balance", "1,000.00"), labelled("Payments In", "500.00"), labelled("Payments Out", "120.50"),
    labelled("Closing Balance", "1,379.50"), "",
    [(50, "Date"), (110, "Payment type and details"), (-400, "Paid out"), (-480, "Paid in"), (-560, "Balance")],
    [(50, "31 Dec 23"), (130, "BALANCE BROUGHT FORWARD"), (-560, "1,000.00")],
    [(50, "02 Jan 24"), (110, "VIS"), (130, "GROCER STORES"), (-400, "20.50")], [(130, "LONDON")],
    [(110, "DD"), (130, "COUNCIL TAX"), (-400, "100.00"), (-560, "879.50")],
    [(50, "15 Jan 24"), (110, "CR"), (130, "ACME LTD SALARY"), (-480, "500.00"), (-560, "1,379.50")],
    [(50, "31 Jan 24"), (130, "BALANCE CARRIED FORWARD"), (-560, "1,379.50")], "", "Information about compensation",
]  # fmt: skip
DEBIT_IN_LETTERS: list[str | Cells] = [
    "Volksbank Beispieltal eG", "Kontoauszug 2/2024", [(300, "alter Kontostand vom 31.01.2024"), (-560, "1.000,00 H")], "",
    [(50, "Bu-Tag"), (95, "Wert"), (140, "Vorgang"), (-560, "Umsatz")],
    [(50, "01.02."), (95, "01.02."), (140, "Gehalt"), (-560, "2.000,00 H")], [(140, "ACME GmbH")],
    [(50, "05.02."), (95, "05.02."), (140, "Basislastschrift"), (-560, "50,10 S")], [(140, "Stadtwerke EREF 1")],
    [(50, "28.02."), (95, "29.02."), (140, "Miete"), (-560, "700,00 S")],
    [(300, "neuer Kontostand vom 29.02.2024"), (-560, "2.249,90 H")],
]  # fmt: skip
TOTALS_BELOW_COLUMNS: list[str | Cells] = [
    "Banque Exemple", "Période du 01/02/2024 au 29/02/2024",
    [(50, "Date"), (100, "Valeur"), (150, "Nature des opérations"), (-470, "Débit"), (-560, "Crédit")],
    [(150, "SOLDE CREDITEUR AU 31/01/2024"), (-560, "1 000,00")],
    [(50, "02/02"), (100, "02/02"), (150, "VIR SALAIRE"), (-560, "2 000,00")],
    [(50, "05/02"), (100, "06/02"), (150, "PRLV ENERGIE"), (-470, "50,10")],
    [(50, "07/02"), (100, "07/02"), (150, "CARTE 06/02 BOULANGERIE"), (-470, "4,20")],
    [(50, "27/02"), (100, "27/02"), (150, "LOYER"), (-470, "1 200,00")],
    [(150, "TOTAL DES OPERATIONS"), (-470, "1 254,30"), (-560, "2 000,00")],
    [(150, "SOLDE CREDITEUR AU 29/02/2024"), (-560, "1 745,70")],
]  # fmt: skip
_CARD: Cells = [(50, "Trans Date"), (110, "Post Date"), (170, "Description"), (-560, "Amount")]
OWED: list[str | Cells] = [
    "Capital Card", "Billing period: Dec 12, 2023 - Jan 11, 2024", labelled("Previous Balance", "$500.00"),
    labelled("Payments and Credits", "- $300.00"), labelled("Purchases", "+ $120.00"), labelled("Fees Charged", "+ $0.00"),
    labelled("Interest Charged", "+ $5.00"), labelled("New Balance", "= $325.00"), "",
    "Payments, Credits and Adjustments", _CARD,
    [(50, "Jan 2"), (110, "Jan 3"), (170, "PAYMENT THANK YOU"), (-560, "- $300.00")], "", "Transactions", _CARD,
    [(50, "Dec 14"), (110, "Dec 15"), (170, "BOOKSTORE"), (-560, "$20.00")],
    [(50, "Dec 30"), (110, "Dec 31"), (170, "HOTEL"), (-560, "$100.00")],
    [(50, "Jan 11"), (110, "Jan 11"), (170, "INTEREST CHARGE"), (-560, "$5.00")],
]  # fmt: skip
CARD_IN_A_SECTION: list[str | Cells] = [
    "Bank of Meadows, N.A.", "Your checking account for March 1, 2024 to March 31, 2024", "Account number: 0041 7716 9018", "",
    labelled("Beginning balance on March 1, 2024", "$500.00"), labelled("Deposits and other additions", "1,200.00"),
    labelled("Withdrawals and other subtractions", "-175.00"), labelled("Ending balance on March 31, 2024", "$1,525.00"), "",
    "Deposits and other additions", _HEAD, row("03/04", "PAYROLL ID:99", (-560, "1,200.00")),
    labelled("Total deposits and other additions", "$1,200.00", -560), "",
    "Withdrawals and other subtractions", _HEAD, row("03/05", "ELECTRIC CO BILL", (-560, "-100.00")),
    labelled("Total other subtractions", "-$100.00", -560), "",
    "Card account # XXXX XXXX XXXX 9126", _HEAD, row("03/09", "GROCERY", (-560, "-50.00")), row("03/20", "CAFE", (-560, "-25.00")),
    labelled("Subtotal for card account # XXXX XXXX XXXX 9126", "-$75.00", -560),
    labelled("Total withdrawals and other subtractions", "-$175.00", -560), "",
    "Daily ledger balances", [(50, "Date"), (-200, "Balance ($)"), (250, "Date"), (-400, "Balance ($)")],
    [(50, "03/04"), (-200, "1,700.00"), (250, "03/05"), (-400, "1,600.00")],
    [(50, "03/09"), (-200, "1,550.00")],
]  # fmt: skip
MEMBERS_OF_A_CARD: list[str | Cells] = [
    "Summit Charge Card", "Billing period 02/28/24 to 03/27/24", labelled("Previous Balance", "$80.00"),
    labelled("Payments/Credits", "-$80.00"), labelled("New Charges", "+$60.00"), labelled("Interest Charged", "+$2.00"),
    labelled("New Balance", "$62.00"), "",
    "Payments and Credits", _HEAD, row("03/02/24", "ONLINE PAYMENT - THANK YOU", (-560, "-$80.00")),
    labelled("Total Payments and Credits", "-$80.00", -560), "",
    "New Charges   ELENA VOSS", _HEAD, row("03/05/24", "BOOKS", (-560, "$10.00")), row("03/06/24", "CAB", (-560, "$20.00")),
    labelled("Total for ELENA VOSS", "$30.00", -560), "",
    "New Charges   MARCUS VOSS", _HEAD, row("03/09/24", "GRILL", (-560, "$30.00")),
    labelled("Total for MARCUS VOSS", "$30.00", -560), labelled("Total New Charges", "$60.00", -560), "",
    "Interest Charged", _HEAD, row("03/27/24", "INTEREST CHARGE ON PURCHASES", (-560, "$2.00")),
    labelled("Total Interest Charged for this Period", "$2.00", -560), "",
    "Interest Charge Calculation", [(50, "Type of balance"), (300, "Annual Percentage Rate"), (430, "Balance subject to rate")],
]  # fmt: skip
BALANCE_OF_THE_DAY: list[str | Cells] = [
    "Banco do Vale", "extrato de conta corrente   período 01/03/2024 a 31/03/2024", "",
    [(50, "data"), (110, "histórico"), (-430, "valor (R$)"), (-545, "saldo (R$)")],
    [(110, "SALDO ANTERIOR"), (-545, "100,00")],
    row("04/03/2024", "PIX QRS PADARIA SOL", (-430, "40,00-")), row("04/03/2024", "TED RECEBIDA COOP", (-430, "90,00")),
    row("04/03/2024", "SALDO DO DIA", (-545, "150,00")), row("11/03/2024", "SAQUE 24H", (-430, "60,00-")),
    row("11/03/2024", "SALDO DO DIA", (-545, "90,00")),
    labelled("saldo em conta corrente em 31/03/2024", "90,00", -545),
    "limite da conta contratado 1.500,00   CET 151,8% a.a.",
]  # fmt: skip
BLANKS_IN_DATES: list[str | Cells] = [
    "Banque Exemple", "du 01/02/2024 au 29/02/2024",
    [(50, "Date"), (100, "Libellé"), (345, "Valeur"), (-470, "Débit"), (-560, "Crédit")],
    [(100, "SOLDE CREDITEUR AU 31.01.2024"), (-560, "1 000,00")],
    [(50, "02 02"), (100, "VIR SALAIRE"), (345, "03 02"), (-560, "2 000,00")],
    [(50, "15 02"), (100, "LOYER"), (345, "15 02"), (-470, "1 200,00")],
    [(100, "TOTAL DES OPERATIONS"), (-470, "1 200,00"), (-560, "2 000,00")],
    [(100, "SOLDE CREDITEUR AU 29.02.2024"), (-560, "1 800,00")],
]  # fmt: skip
VALUE_DATES_BEFORE_BALANCES: list[str | Cells] = [
    "Alpenbank AG", "Kontoauszug 01.01.2024 - 31.01.2024", "",
    [(50, "Datum"), (105, "Buchungstext"), (-345, "Belastung"), (-420, "Gutschrift"), (435, "Valuta"), (-550, "Saldo")],
    [(105, "Saldovortrag"), (-550, "3'710.00")],
    [(50, "03.01.24"), (105, "Dauerauftrag Miete"), (-345, "200.00"), (435, "03.01.24")],
    [(50, "03.01.24"), (105, "Einkauf Laden"), (-345, "10.00"), (435, "04.01.24"), (-550, "3'500.00")],
    [(50, "09.01.24"), (105, "Bargeldbezug"), (-345, "50.00"), (435, "09.01.24")],
    [(50, "09.01.24"), (105, "Lohn AG"), (-420, "1'000.00"), (435, "10.01.24"), (-550, "4'450.00")],
    [(105, "Umsatztotal"), (-345, "260.00"), (-420, "1'000.00")], [(105, "Schlusssaldo"), (-550, "4'450.00")],
]  # fmt: skip
LABELS_BEHIND_AMOUNTS: list[str | Cells] = [
    "Banca del Golfo", "ESTRATTO CONTO AL 31.01.2024", "",
    [(50, "DATA"), (105, "VALUTA"), (-240, "USCITE"), (-310, "ENTRATE"), (330, "DESCRIZIONE")],
    [(-310, "3.000,00"), (330, "SALDO INIZIALE AL 31.12.2023")],
    [(50, "03.01.24"), (105, "03.01.24"), (-240, "20,00"), (330, "PAGAMENTO POS")], [(330, "CARTA 4417")],
    [(50, "09.01.24"), (105, "10.01.24"), (-310, "900,00"), (330, "STIPENDIO")], [(330, "RIF 88120")],
    [(-310, "3.880,00"), (330, "SALDO FINALE AL 31.01.2024")],
]  # fmt: skip
DATE_BESIDE_A_SUMMARY: list[str | Cells] = [
    "Summit Charge Card", "Billing period 02/28/24 to 03/27/24", "",
    [(50, "Please Pay By"), (330, "Previous Balance"), (-560, "$80.00")],
    [(50, "04/16/24"), (330, "Payments/Credits"), (-560, "-$80.00")],
    [(330, "New Charges"), (-560, "+$60.00")], [(330, "New Balance"), (-560, "=$60.00")], "",
    "Payments and Credits", _HEAD, row("03/02/24*", "ONLINE PAYMENT - THANK YOU", (-560, "-$80.00")), "",
    "New Charges", _HEAD, row("03/05/24", "BOOKS", (-560, "$10.00")), row("03/09/24", "GRILL", (-560, "$50.00")),
    labelled("Total New Charges", "$60.00", -560),
]  # fmt: skip
DEBITS_WITH_A_MINUS: list[str | Cells] = [
    "Banco Serra", "Período: 01/11/2023 a 30/11/2023", "",
    [(50, "Data"), (110, "Histórico"), (-400, "Crédito"), (-480, "Débito"), (-560, "Saldo")],
    [(110, "SALDO ANTERIOR"), (-560, "100,00")], row("03/11/2023", "CONTA DE LUZ", (-480, "-40,00"), (-560, "60,00")),
    row("07/11/2023", "SALARIO", (-400, "900,00"), (-560, "960,00")), row("09/11/2023", "SAQUE", (-480, "-60,00"), (-560, "900,00")),
]  # fmt: skip
VALUE_DATES_BELOW: list[str | Cells] = [
    "Direktbank Auental", "Girokonto   31.03.2023", labelled("Alter Saldo", "100,00 Euro"), labelled("Neuer Saldo", "40,00 Euro"), "",
    [(50, "Buchung"), (130, "Buchung / Verwendungszweck"), (-560, "Betrag (EUR)")], "Valuta",
    row("03.03.2023", "Lastschrift KORN", (-560, "-20,00")), row("04.03.2023", "Rechnung 12"), "",
    row("09.03.2023", "Lastschrift MARKT", (-560, "-30,00")), row("09.03.2023", "Miete"), [(110, "Mandat 7")], "",
    row("20.03.2023", "Entgelt", (-560, "-10,00")), row("21.03.2023", "Quartal"),
]  # fmt: skip
MARKS_BELOW: list[str | Cells] = [
    "Amberley Credit Card", "Statement date 31 March 2024", labelled("Previous balance", "100.00"), labelled("New balance", "80.00"), "",
    [(50, "Date"), (110, "Details"), (-560, "Amount")], row("4 Mar", "BOOKS", (-560, "30.00")),
    row("9 Mar", "PAYMENT - THANK YOU", (-560, "70.00")), [(-560, "CR")], row("12 Mar", "GRILL", (-560, "20.00")),
]  # fmt: skip
RATES_BELOW: list[str | Cells] = [
    "Fellside Saver", "Statement date: 31/01/2024", "", [(50, "Date"), (110, "Details"), (-400, "Paid out"), (-480, "Paid in"), (-560, "Balance")],
    row("01/01/2024", "Balance brought forward", (-560, "100.00")), row("09/01/2024", "Gift", (-480, "20.00"), (-560, "120.00")),
    row("20/01/2024", "Transfer to 11-22-33", (-400, "30.00"), (-560, "90.00")),
    row("31/01/2024", "Balance carried forward", (-560, "90.00")), "", "Interest rate history",
    [(50, "From"), (180, "To"), (300, "Gross rate %"), (-480, "Interest")],
    [(50, "01/01/2024"), (180, "14/01/2024"), (300, "4.00"), (-480, "7.88")], [(50, "15/01/2024"), (180, "31/01/2024"), (300, "4.05"), (-480, "2.71")],
]  # fmt: skip
YEAR_OF_A_LOAN: list[str | Cells] = [
    "Nordhaus mortgage loan", "Period 01.01.2024 - 31.12.2024", "", _DEBITS_AND_CREDITS,
    row("01.01.", "Opening balance", (-560, "900.00")), row("05.01.", "Interest", (-400, "3.00"), (-560, "903.00")),
    row("05.01.", "Instalment", (-480, "50.00"), (-560, "853.00")), row("05.12.", "Instalment", (-480, "50.00"), (-560, "803.00")),
    row("31.12.", "Closing balance", (-560, "803.00")),
]  # fmt: skip
YEARS_OF_TWO_DIGITS_FIRST: list[str | Cells] = [
    "Kansai Bank current account", "Period 24/06/01 - 24/06/30", "", _DEBITS_AND_CREDITS,
    row("24/06/02", "Opening balance", (-560, "900.00")), row("24/06/05", "Gas", (-400, "3.00"), (-560, "897.00")),
    [(50, "24/06/25 10:30"), (130, "Salary"), (-480, "50.00"), (-560, "947.00")],
]  # fmt: skip
FOREIGN_AMOUNTS_IN_TEXTS: list[str | Cells] = [
    "Southern Bank current account", "1 July 2023 to 31 July 2023", "", _DEBITS_AND_CREDITS,
    row("01 Jul", "Opening balance", (-560, "900.00")), row("03 Jul", "Provedore", (-400, "3.00"), (-560, "897.00")), [(110, "USD 12.40")],
    row("09 Jul", "Provedore", (-400, "7.00"), (-560, "890.00")), [(110, "USD 22.40")], row("30 Jul", "Wages", (-480, "50.00"), (-560, "940.00")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "dates", "amounts", "checks"),
    [
        (SUMMARY_IN_PARTS, "2023-10-06 2023-10-09 2023-10-12 2023-10-30", "2500.00 -50.25 -100.00 -600.00", 4),
        (
            DAILY_BALANCES,
            "2024-03-04 2024-03-18 2024-03-05 2024-03-09 2024-03-20 2024-03-11 2024-03-29",
            "1000.00 200.00 -100.00 -150.00 -50.00 -75.00 -12.00",
            5,
        ),
        (BALANCES_AS_ROWS, "2024-01-02 2024-01-02 2024-01-15", "-20.50 -100.00 500.00", 5),
        (DEBIT_IN_LETTERS, "2024-02-01 2024-02-05 2024-02-28", "2000.00 -50.10 -700.00", 1),
        (TOTALS_BELOW_COLUMNS, "2024-02-02 2024-02-05 2024-02-07 2024-02-27", "2000.00 -50.10 -4.20 -1200.00", 3),
        (OWED, "2024-01-02 2023-12-14 2023-12-30 2024-01-11", "300.00 -20.00 -100.00 -5.00", 3),
        (CARD_IN_A_SECTION, "2024-03-04 2024-03-05 2024-03-09 2024-03-20", "1200.00 -100.00 -50.00 -25.00", 5),
        (
            MEMBERS_OF_A_CARD,
            "2024-03-02 2024-03-05 2024-03-06 2024-03-09 2024-03-27",
            "80.00 -10.00 -20.00 -30.00 -2.00",
            6,
        ),
        (BALANCE_OF_THE_DAY, "2024-03-04 2024-03-04 2024-03-11", "-40.00 90.00 -60.00", 3),
        (BLANKS_IN_DATES, "2024-02-02 2024-02-15", "2000.00 -1200.00", 3),
        (
            VALUE_DATES_BEFORE_BALANCES,
            "2024-01-03 2024-01-03 2024-01-09 2024-01-09",
            "-200.00 -10.00 -50.00 1000.00",
            4,
        ),
        (LABELS_BEHIND_AMOUNTS, "2024-01-03 2024-01-09", "-20.00 900.00", 1),
        (DATE_BESIDE_A_SUMMARY, "2024-03-02 2024-03-05 2024-03-09", "80.00 -10.00 -50.00", 3),
        (DEBITS_WITH_A_MINUS, "2023-11-03 2023-11-07 2023-11-09", "-40.00 900.00 -60.00", 1),
        (VALUE_DATES_BELOW, "2023-03-03 2023-03-09 2023-03-20", "-20.00 -30.00 -10.00", 1),
        (MARKS_BELOW, "2024-03-04 2024-03-09 2024-03-12", "-30.00 70.00 -20.00", 1),
        (RATES_BELOW, "2024-01-09 2024-01-20", "20.00 -30.00", 2),
        (YEAR_OF_A_LOAN, "2024-01-05 2024-01-05 2024-12-05", "-3.00 50.00 50.00", 2),
        (YEARS_OF_TWO_DIGITS_FIRST, "2024-06-05 2024-06-25", "-3.00 50.00", 1),
        (FOREIGN_AMOUNTS_IN_TEXTS, "2023-07-03 2023-07-09 2023-07-30", "-3.00 -7.00 50.00", 1),
    ],
    ids=[
        "summary in parts",
        "daily balances",
        "balances as rows",
        "debit in letters",
        "totals below columns",
        "owed",
        "card in a section",
        "members of a card",
        "balance of the day",
        "blanks in dates",
        "value dates before balances",
        "labels behind amounts",
        "date beside a summary",
        "debits with a minus",
        "value dates below",
        "marks below",
        "rates below",
        "year of a loan",
        "years of two digits first",
        "foreign amounts in texts",
    ],
)
def test_rows_are_read_and_sums_are_met(
    lines: list[str | Cells], dates: str, amounts: str, checks: int, tmp_path: Path
) -> None:
    made = drawn(tmp_path, lines)
    assert [one.date for one in made.statement.transactions] == dates.split()
    assert [str(one.amount) for one in made.statement.transactions] == amounts.split()
    assert [one.message for one in made.reconciliation.checks if not one.is_met] == []
    assert len(made.reconciliation.checks) == checks
    assert made.statement.outside == ()


def test_without_a_header_and_without_sums(tmp_path: Path) -> None:
    rows = (
        ("01", "DEPOSIT", "500.00"),
        ("03", "SHOP", "-1,020.00"),
        ("09", "CAFE", "-4.50"),
        ("28", "PAY", "1,500.00"),
    )
    lines: list[str | Cells] = [[(50, f"2024-05-{day}"), (130, text), (420, amount)] for day, text, amount in rows]
    made = drawn(tmp_path, ["Some Community Bank", "", *lines, "", "Thank you for banking with us."])
    assert [str(one.amount) for one in made.statement.transactions] == ["500.00", "-1020.00", "-4.50", "1500.00"]
    assert made.reconciliation.checks == ()
    assert not made.reconciliation.has_only_met_checks  # nothing speaks for it


REFERENCES_AND_A_TURNOVER: list[str | Cells] = [
    "Marble Private Bank", "Account statement   Period: 01 Jan 2024 - 31 Jan 2024", "",
    [(50, "Date"), (110, "Reference"), (190, "Details"), (-400, "Debit"), (-470, "Credit"), (-550, "Balance")],
    [(190, "Balance at 31-Dec-23"), (-550, "1,000.00")],
    [(50, "03-Jan-24"), (110, "FT385257608"), (190, "RENT"), (-400, "200.00"), (-550, "800.00")],
    [(50, "09-Jan-24"), (110, "FT920449495"), (190, "SHOP"), (-400, "50.00"), (-550, "750.00")],
    [(50, "15-Jan-24"), (110, "FT521227407"), (190, "SALARY"), (-470, "800.00"), (-550, "1,550.00")],
    [(50, "16-Jan-24"), (110, "FT161400798"), (190, "REFUND"), (-470, "100.00"), (-550, "1,650.00")],
    [(190, "Turnover"), (-400, "250.00"), (-470, "900.00")], [(190, "Balance at 31-Jan-24"), (-550, "1,650.00")],
]  # fmt: skip


def test_references_and_totals_of_any_label_are_no_rows(tmp_path: Path) -> None:
    made = drawn(tmp_path, REFERENCES_AND_A_TURNOVER)
    assert [one.description for one in made.statement.transactions] == ["RENT", "SHOP", "SALARY", "REFUND"]
    assert [finding.message for finding in find_unused_sums(made)] == []


_SIDES: Cells = [(50, "Date"), (110, "Details"), (-400, "Debit"), (-480, "Credit"), (-560, "Balance")]


def test_sums_are_found_by_amounts_whatever_their_labels(tmp_path: Path) -> None:
    lines: list[str | Cells] = [
        "Pebble Bank current account", labelled("Zorvik plank", "500.00"), labelled("Dorvik plank", "440.00"), "",
        _SIDES[:-1], row("01/15/2024", "TAVERN", (-400, "80.00")), row("01/18/2024", "BAKERY", (-400, "20.00")),
        row("01/24/2024", "SALARY", (-480, "40.00")),
    ]  # fmt: skip
    checks = drawn(tmp_path, lines).reconciliation.checks
    assert [(check.name, check.is_met) for check in checks] == [("closing_balance", True)]
    lines[2] = labelled("Dorvik plank", "441.00")
    assert drawn(tmp_path, lines).reconciliation.checks == ()


def test_balances_around_the_rows_choose_the_columns(tmp_path: Path) -> None:
    lines: list[str | Cells] = [
        "Pebble Bank current account", labelled("Zorvik plank", "500.00"), "",
        [(50, "Tirm"), (110, "Wexel"), (-400, "Orrin"), (-480, "Ulmet")],
        row("01/15/2024", "TAVERN", (-480, "80.00")), row("01/18/2024", "BAKERY", (-480, "20.00")),
        row("01/24/2024", "SALARY", (-400, "40.00")), "", labelled("Dorvik plank", "440.00"),
    ]  # fmt: skip
    applied = drawn(tmp_path, lines)
    assert [str(transaction.amount) for transaction in applied.statement.transactions] == ["-80.00", "-20.00", "40.00"]
    assert applied.is_closed
    assert "balances" in applied.template.amounts.sign_proof


def test_columns_of_text_are_told_apart_without_words(tmp_path: Path) -> None:
    head: Cells = [(50, "Tirm"), (130, "Quib"), (180, "Wexel"), (-400, "Ilk"), (-560, "Orrin")]
    rows: list[str | Cells] = [
        [(50, day), (130, code), (180, text), (-400, points), (-560, amount)]
        for day, code, text, points, amount in (
            ("01/15/2024", "VIS", "TAVERN", "8", "-80.00"), ("01/18/2024", "SO", "LANDLORD", "2", "-20.00"),
            ("01/24/2024", "BP", "SALARY", "14", "40.00"),
        )
    ]  # fmt: skip
    head_again: list[str | Cells] = [head, [(50, "01/26/2024"), (130, "VIS"), (180, "BAKERY"), (-560, "-4.00")]]
    transactions = drawn(tmp_path, [head, *rows, "", *head_again]).statement.transactions
    assert [each.description for each in transactions] == ["TAVERN", "LANDLORD", "SALARY", "BAKERY"]


def test_rows_may_lie_below_a_second_header_with_more_columns(tmp_path: Path) -> None:
    head: Cells = [(50, "Date"), (130, "Details"), (-450, "Points"), (-560, "Amount")]
    abroad: Cells = [(50, "Date"), (130, "Details"), (-370, "Currency"), (-450, "Points"), (-560, "Amount")]
    rows: list[Cells] = [
        [(50, f"0{day}/01/2024"), (130, "SHOP"), (-450, str(day)), (-560, f"{day}0.00")] for day in range(3, 8)
    ]
    rows_abroad = [[*cells[:2], (-370.0, f"USD {number}.50"), *cells[2:]] for number, cells in enumerate(rows, 7)]
    transactions = drawn(tmp_path, [head, *rows, "", "International", abroad, *rows_abroad]).statement.transactions
    assert [(each.description, str(abs(each.amount))) for each in transactions] == 2 * [
        ("SHOP", f"{day}0.00") for day in range(3, 8)
    ]


#: The day's totals stand above its rows, and only they have a mark.
DAYS_WITH_TOTALS: list[str | Cells] = [
    "Pebble Bank account", "Extrato 01/03/2024 a 31/03/2024", labelled("Saldo inicial", "100.00"), labelled("Saldo final", "129.00"), "",
    row("04/03/2024", "Total de entradas", (-560, "+50.00")), [(130, "Salary"), (-560, "30.00")], [(130, "Refund"), (-560, "20.00")],
    [(130, "Total de saidas"), (-560, "-7.00")], [(130, "Baker"), (-560, "7.00")],
    row("09/03/2024", "Total de saidas", (-560, "-14.00")), [(130, "Tavern"), (-560, "9.00")], [(130, "Grocer"), (-560, "5.00")],
]  # fmt: skip


def test_totals_above_their_rows_are_no_rows(tmp_path: Path) -> None:
    applied = drawn(tmp_path, DAYS_WITH_TOTALS)
    rows = [(each.date[-2:], each.description, str(each.amount)) for each in applied.statement.transactions]
    assert rows == [
        ("04", "Salary", "30.00"), ("04", "Refund", "20.00"), ("04", "Baker", "-7.00"), ("09", "Tavern", "-9.00"),
        ("09", "Grocer", "-5.00"),
    ]  # fmt: skip
    assert applied.is_closed
    assert [check.name for check in applied.sum_checks].count("section_total") == 3
    assert not [*find_missed_rows(applied), *find_wrong_directions(applied), *find_wrong_dates(applied)]


def test_amounts_without_cents_may_have_points(tmp_path: Path) -> None:
    lines: list[str | Cells] = [
        "Pebble Bank account", "", _SIDES, row("01/15/2024", "TAVERN", (-400, "80.000"), (-560, "1.420.000")),
        row("01/24/2024", "SALARY", (-480, "4.000"), (-560, "1.424.000")),
    ]  # fmt: skip
    amounts = [int(transaction.amount) for transaction in drawn(tmp_path, lines).statement.transactions]
    assert amounts == [-80000, 4000]


def test_currencies_above_tables_head_accounts(tmp_path: Path) -> None:
    lines: list[str | Cells] = [
        "Pebble Bank foreign currency statement", "", "USD pocket", _SIDES,
        row("01/15/2024", "TAVERN", (-400, "80.00"), (-560, "420.00")),
        row("01/24/2024", "SALARY", (-480, "40.00"), (-560, "460.00")), "", "EUR pocket", _SIDES,
        row("01/16/2024", "BAKERY", (-400, "7.00"), (-560, "93.00")),
        row("01/28/2024", "REFUND", (-480, "4.00"), (-560, "97.00")),
    ]  # fmt: skip
    accounts = [transaction.account for transaction in drawn(tmp_path, lines).statement.transactions]
    assert accounts == ["USD pocket", "USD pocket", "EUR pocket", "EUR pocket"]


@pytest.mark.parametrize(
    "dates",
    [
        ("2024.01.15.", "2024.01.18.", "2024.01.24."),
        ("15.01.2024.", "18.01.2024.", "24.01.2024."),
        ("15. 1. 2024", "18. 1. 2024", "24. 1. 2024"),
        ("Mon 15 Jan 2024", "Thu 18 Jan 2024", "Wed 24 Jan 2024"),
        ("15 stycznia 2024", "18 stycznia 2024", "24 stycznia 2024"),
    ],
)
def test_dates_of_many_places_are_read(dates: tuple[str, ...], tmp_path: Path) -> None:
    rows = [[(50.0, day), (170.0, "TAVERN"), (-560.0, "80.00")] for day in dates]
    transactions = drawn(tmp_path, [*rows]).statement.transactions
    assert [transaction.date for transaction in transactions] == ["2024-01-15", "2024-01-18", "2024-01-24"]


def test_codes_with_a_title_of_their_own_are_no_description(tmp_path: Path) -> None:
    head: Cells = [(50, "Date"), (130, "Type"), (180, "Details"), (-560, "Amount")]
    rows: list[str | Cells] = [
        [(50, day), (130, code), (180, text), (-560, amount)]
        for day, code, text, amount in (
            ("01/15/2024", "VIS", "TAVERN", "-80.00"), ("01/18/2024", "SO", "LANDLORD", "-20.00"),
            ("01/24/2024", "BP", "SALARY", "40.00"),
        )
    ]  # fmt: skip
    transactions = drawn(tmp_path, [head, *rows]).statement.transactions
    assert [transaction.description for transaction in transactions] == ["TAVERN", "LANDLORD", "SALARY"]


@pytest.mark.parametrize(
    ("lines", "descriptions"),
    [
        (VALUE_DATES_BELOW, ["Lastschrift KORN Rechnung 12", "Lastschrift MARKT Miete Mandat 7", "Entgelt Quartal"]),
        (FOREIGN_AMOUNTS_IN_TEXTS, ["Provedore USD 12.40", "Provedore USD 22.40", "Wages"]),
        (YEARS_OF_TWO_DIGITS_FIRST, ["Gas", "Salary"]),
    ],
)
def test_descriptions_have_all_their_lines_and_no_time(
    lines: list[str | Cells], descriptions: list[str], tmp_path: Path
) -> None:
    assert [one.description for one in drawn(tmp_path, lines).statement.transactions] == descriptions


def test_references_beside_partners_are_no_description(tmp_path: Path) -> None:
    head: Cells = [(50, "Booked"), (120, "Valued"), (190, "Reference"), (270, "Partner"), (-560, "Amount")]
    rows: list[str | Cells] = [
        [(50, f"{day}/01/2024"), (120, f"{day}/01/2024"), (190, f"T88{day}"), (270, text), (-560, "-80.00")]
        for day, text in (("15", "TAVERN"), ("18", "LANDLORD"), ("24", "BAKERY"))
    ]
    transactions = drawn(tmp_path, [head, *rows]).statement.transactions
    assert [transaction.description for transaction in transactions] == ["TAVERN", "LANDLORD", "BAKERY"]


def test_a_prepaid_card_holds_money(tmp_path: Path) -> None:
    head = ["Swirl Prepaid", "Card statement   May 2024", labelled("Balance at start of month", "100.00")]
    rows = [row("03/05/2024", "NEWS", (-560, "-5.00")), row("14/05/2024", "REFUND", (-560, "+20.00"))]
    made = drawn(tmp_path, [*head, labelled("Balance at end of month", "115.00"), "", _HEAD, *rows])
    assert (made.template.identity.statement, made.template.amounts.balance) == ("prepaid card", "held")
    assert "marks" in made.template.amounts.sign_proof


def test_a_heading_apart_from_the_row_above_is_no_line_of_it(tmp_path: Path) -> None:
    head: Cells = [(50, "Date"), (110, "Details"), (-560, "Amount")]
    lines: list[str | Cells] = [
        head, row("01/15/2024", "REFUND", (-560, "-80.00")), row("01/16/2024", "REFUND", (-560, "-7.00")), "",
        [(110, "PURCHASES")], row("01/18/2024", "TAVERN", (-560, "20.00")), [(110, "IN TOWN")],
        row("01/24/2024", "BAKERY", (-560, "40.00")),
    ]  # fmt: skip
    applied = drawn(tmp_path, lines)
    descriptions = [transaction.description for transaction in applied.statement.transactions]
    assert descriptions == ["REFUND", "REFUND", "TAVERN IN TOWN", "BAKERY"]
    assert applied.statement.transactions[-1].section == "PURCHASES"


def test_sums_of_the_year_and_tables_of_rates_are_no_sums(tmp_path: Path) -> None:
    lines = [
        *DAILY_BALANCES,
        "",
        labelled("Total fees charged in 2024", "$58.00"),
        [(50, "Deposits"), (200, "1.5%"), (-400, "7.00")],
    ]
    labels = [printed.label for printed in drawn(tmp_path, lines).statement.sums]
    assert labels
    assert not any("2024" in label and "fees" in label for label in labels)
    assert "7.00" not in {str(printed.value) for printed in drawn(tmp_path, lines).statement.sums}


def _amounts(applied: AppliedTemplate) -> list[int]:
    return [int(transaction.amount) for transaction in applied.statement.transactions]


def test_dates_as_headings_date_the_rows_below(tmp_path: Path) -> None:
    lines: list[str | Cells] = [
        "Elm Bank Current Account", labelled("Opening balance", "100.00"), "", "Monday, 4 March 2024",
        [(54, "SHOP"), (-560, "-10.00 kr")], [(54, "Ref 000 218 744,00")], [(54, "Rent for ul. Lipowa 4 m. 12"), (-560, "-20.00 kr")],
        [(54, "Vuvem"), (-560, "70.00 kr")], "Tuesday, 5 March", [(54, "SALARY"), (-560, "+50.00 kr")],
        [(54, "Vuvem"), (-560, "120.00 kr")], "Thursday, 7 March 2024", [(54, "SHOP"), (-560, "-5.00 kr")], [(54, "Vuvem"), (-560, "115.00 kr")],
        "Friday, 8 March 2024", [(54, "SHOP"), (-560, "-6.00 kr")], [(54, "Vuvem"), (-560, "109.00 kr")],
    ]  # fmt: skip
    applied = drawn(tmp_path, lines)
    assert [transaction.date[8:] for transaction in applied.statement.transactions] == ["04", "04", "05", "07", "08"]
    assert _amounts(applied) == [-10, -20, 50, -5, -6]
    assert applied.statement.transactions[0].boxes[0][0] == pytest.approx(50 / 612, abs=0.01), (
        "where the date is printed"
    )
    assert not [*find_missed_rows(applied), *find_wrong_directions(applied), *find_wrong_descriptions(applied)]


def test_zeros_in_the_other_side_are_no_amounts(tmp_path: Path) -> None:
    rows = [
        row("03/05/2024", "SHOP", (-400, "10.00"), (-480, "0.00"), (-560, "90.00")),
        row("04/05/2024", "PAY", (-400, "0.00"), (-480, "50.00"), (-560, "140.00")),
        row("05/05/2024", "SHOP", (-400, "20.00"), (-480, "0.00"), (-560, "120.00")),
    ]
    assert _amounts(drawn(tmp_path, ["Elm Bank", _DEBITS_AND_CREDITS, *rows])) == [-10, 50, -20]


def test_amounts_in_two_sides_below_the_rows_are_totals(tmp_path: Path) -> None:
    rows = [
        row("03/05/2024", "SHOP", (-400, "10.00"), (-560, "90.00 DR")),
        row("04/05/2024", "PAY", (-480, "50.00"), (-560, "40.00 DR")),
        row("05/05/2024", "SHOP", (-400, "20.00"), (-560, "60.00 DR")),
        row("06/05/2024", "SHOP", (-400, "5.00"), (-560, "65.00 DR")),
    ]
    titles: Cells = [(50, "Fevi"), (110, "Vsept"), (-400, "Ficov"), (-480, "Dsifov"), (-560, "Cemep")]
    applied = drawn(tmp_path, [titles, *rows, [(110, "Vuvem"), (-400, "35.00"), (-480, "50.00")]])
    assert _amounts(applied) == [-10, 50, -20, -5]
    assert [check.is_met for check in applied.sum_checks if check.name == "subtotal"] == [True, True]


def test_dates_in_order_are_those_of_booking(tmp_path: Path) -> None:
    days = [
        ("09/05/2024", "03/05/2024"),
        ("04/05/2024", "05/05/2024"),
        ("07/05/2024", "06/05/2024"),
        ("06/05/2024", "08/05/2024"),
    ]
    rows: list[str | Cells] = [[(50, value), (120, day), (200, "SHOP"), (-560, "-9.00")] for value, day in days]
    titles: Cells = [(50, "Xqw"), (120, "Zzv"), (200, "Kpl"), (-560, "Mrt")]
    applied = drawn(tmp_path, ["Period 01/05/2024 to 31/05/2024", titles, *rows])
    assert [transaction.date[8:] for transaction in applied.statement.transactions] == ["03", "05", "06", "08"]


def test_numbers_of_receipts_are_no_part_of_descriptions(tmp_path: Path) -> None:
    rows: list[str | Cells] = [
        [(50, code), (130, f"0{day}/05/2024"), (210, "SHOP"), (-560, "-9.00")]
        for day, code in ((3, "SC2PW"), (4, "SNDRQ"), (5, "S7WRV"), (6, "S5SKD"))
    ]
    titles: Cells = [(50, "Receipt"), (130, "Date"), (210, "Details"), (-560, "Amount")]
    applied = drawn(tmp_path, ["Elm Bank Current Account", titles, *rows])
    assert {transaction.description for transaction in applied.statement.transactions} == {"SHOP"}
    assert not [*find_wrong_descriptions(applied)]


def test_letters_behind_amounts_mean_what_the_balances_show(tmp_path: Path) -> None:
    rows = [
        row("03/05/2024", "SHOP", (-480, "10.00 B"), (-560, "90.00 A")),
        row("04/05/2024", "PAY", (-480, "50.00 A"), (-560, "140.00 A")),
        row("05/05/2024", "SHOP", (-480, "20.00 B"), (-560, "120.00 A")),
        row("06/05/2024", "SHOP", (-480, "5.00 B"), (-560, "115.00 A")),
    ]
    applied = drawn(tmp_path, ["Elm Bank", labelled("Opening balance", "100.00 A"), _HEAD_WITH_BALANCE, *rows])
    assert _amounts(applied) == [-10, 50, -20, -5]


def test_accounts_are_told_apart_by_the_place_of_headings() -> None:
    def print_account(name: str, days: int, opening: str, closing: str) -> str:
        return f"""{name}
Date         Details          Amount     Balance
             Opening balance             {opening}
0{days}/03/2024   SHOP A           -12.00       {closing}
1{days}/03/2024   SALARY            50.00      138.00
             Closing balance              138.00
"""

    text = (
        "Example Bank\n"
        + print_account("Zorvik blue", 2, "100.00", " 88.00")
        + print_account("Zorvik green", 4, "100.00", " 88.00")
    )
    read = build_draft_template(document(text))
    assert [row.account for row in read.statement.transactions] == ["Zorvik blue"] * 2 + ["Zorvik green"] * 2
    assert read.has_all_sums_met


def test_bank_number_below_a_row_is_no_account() -> None:
    text = """Example Bank
Date         Details                          Amount     Balance
             Opening balance                              100.00
02/03/2024   SHOP A                           -12.00       88.00
             IBAN: XX12 0004 4417
             Invoice 7
14/03/2024   SALARY                            50.00      138.00
             IBAN: XX98 0004 4417
             Invoice 7
             Closing balance                              138.00
"""
    rows = build_draft_template(document(text)).statement.transactions
    assert [row.description for row in rows] == [
        "SHOP A IBAN: XX12 0004 4417 Invoice 7",
        "SALARY IBAN: XX98 0004 4417 Invoice 7",
    ]


def test_balances_carried_among_the_amounts_are_no_rows() -> None:
    first = """Example Bank
Date         Details          Amount
02/03/2024   SHOP A           12.00-
03/03/2024   BLUE ROAD 7
14/03/2024   SALARY           50.00+
15/03/2024   GREEN ROAD
             Zorvik          138.00+
"""
    second = """Date         Details          Amount
             Dorvik          138.00+
17/03/2024   RENT             30.25-
18/03/2024   WHITE ROAD

             Opening balance 100.00+
             Closing balance 107.75+
"""
    read = build_draft_template(document(first, second))
    assert [(row.description, str(row.amount)) for row in read.statement.transactions] == [
        ("SHOP A BLUE ROAD 7", "-12.00"), ("SALARY GREEN ROAD", "50.00"), ("RENT WHITE ROAD", "-30.25")
    ]  # fmt: skip
    assert read.has_all_sums_met
