"""A bank's own export: columns in any order, separators and dates of many countries, and the comparison with it."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.errors import UsageError
from evalkit.statements.bank_export import ExportedRow, compare_with_export, read_bank_export
from evalkit.statements.statement_parser import Transaction

EXPECTED = [("2024-02-01", "-1234.50"), ("2024-02-03", "20.00"), ("2024-02-09", "-7.00")]

FILES = {
    "signed": "Date,Description,Amount\n2024-02-01,RENT,-1234.50\n2024-02-03,PAY,20\n2024-02-09,FEE,-7.00\n",
    "german": (
        '"Betrag";"Verwendungszweck";"Saldo";"Buchungstag";"Valuta"\n-1.234,50;Miete;5,00;01.02.2024;02.02.2024\n'
        "20,00;Lohn;25,00;03.02.2024;03.02.2024\n-7,00;Gebühr;18,00;09.02.2024;09.02.2024\n"
    ),
    "two columns": "Date,Money in,Money out,Balance,Text\n01/02/2024,,1234.50,1.00,a\n03/02/2024,20.00,,21.00,b\n09/02/2024,,7.00,14.00,c\n",
    "zeros": "Date\tDebit\tCredit\n2/1/2024\t1,234.50\t0.00\n2/3/2024\t0.00\t20.00\n2/9/2024\t7.00\t0.00\n",
    "one side": "Date,Money in,Money out\n2024-02-01,,1234.50\n2024-02-09,,7.00\n",
    "direction": "Datum;Naam;Af Bij;Bedrag (EUR)\n20240201;a;Af;1234,50\n20240203;b;Bij;20,00\n20240209;c;Af;7,00\n",
    "untitled": "2024-02-01|a|-1234.50|100.00\n2024-02-03|b|20.00|120.00\n2024-02-09|c|-7.00|113.00\n",
    "newest first": "Date,Text,Amount,Balance\n09 Feb 2024,c,-7.00,113.00\n03 Feb 2024,b,20.00,120.00\n01 Feb 2024,a,-1234.50,100.00\n",
    "currency": "Date;Text;Amount\n2024-02-01;a;-1'234.50 CHF\n2024-02-03;b;CHF 20.00\n2024-02-09;c;(7.00)\n",
    "preamble": "Account 12345\nExported,today\nDate,Text,Amount\n2024-02-01T10:00:00,a,-1234.50\n2024-02-03 09:30,b,20.00\n2024-02-09,c,-7.00\n",
    "sgml": (
        "OFXHEADER:100\nDATA:OFXSGML\n\n<OFX><BANKTRANLIST><STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240201120000[-5:EST]<TRNAMT>-1234.50"
        "<NAME>A &amp; B</STMTTRN><STMTTRN><DTPOSTED>20240203<TRNAMT>20.00<NAME>b</STMTTRN>\n<STMTTRN>\n<DTPOSTED>20240209\n"
        "<TRNAMT>-7,00\n<MEMO>c\n</STMTTRN></BANKTRANLIST><LEDGERBAL><BALAMT>9.00</LEDGERBAL></OFX>"
    ),
}  # fmt: skip


def read_text(tmp_path: Path, text: str | bytes) -> list[ExportedRow]:
    path = tmp_path / "bank.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_bank_export(path)


@pytest.mark.parametrize("name", FILES)
def test_columns_are_found_by_content(name: str, tmp_path: Path) -> None:
    rows = sorted(read_text(tmp_path, FILES[name]), key=lambda row: row.dates)
    assert [(row.dates[0], f"{row.amount:.2f}") for row in rows] == (
        [EXPECTED[0], EXPECTED[2]] if name == "one side" else EXPECTED
    )


def test_a_file_of_another_encoding_is_read(tmp_path: Path) -> None:
    (row, *_) = read_text(tmp_path, FILES["german"].encode("cp1252"))
    assert row.description == "Miete"
    assert read_text(tmp_path, FILES["german"].encode("utf-16"))[2].description == "Gebühr"


@pytest.mark.parametrize(
    "text",
    [
        "", "no table", "Date,Text\n2024-02-01,a\n2024-02-02,b\n", "Text,Amount\na,1.00\nb,2.00\n", "\x00" * 1000,
        "<STMTTRN>" * 1000, '"' * 100_001, "Date,Amount\n" + "1" * 100_000 + ",2.00\n",
    ],
)  # fmt: skip
def test_what_is_no_export_is_an_error_that_names_the_file(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"bank\.csv cannot be compared"):
        read_text(tmp_path, text)


@pytest.mark.parametrize("cell", ["1,", "(", "-", " ", "<STMTTRN>", "<A>", "9.", "Jan "])
def test_hostile_lines_do_not_stop_the_program(cell: str, tmp_path: Path) -> None:
    line = cell * (100_000 // len(cell))
    start = time.process_time()
    for text in (f"Date;Amount\n2024-02-01;{line}\n2024-02-01;1.00\n", line):
        try:
            read_text(tmp_path, text)
        except UsageError:
            continue
    assert time.process_time() - start < 5


def transaction(day: str, amount: str, text: str) -> Transaction:
    return Transaction(date=day, description=text, amount=Decimal(amount), page=1, boxes=())


def test_each_row_is_equal_missing_extra_or_differs() -> None:
    read = [
        transaction("2024-02-01", "-5.00", "COFFEE CORNER"),
        transaction("2024-02-01", "-5.00", "COFFEE CORNER"),
        transaction("2024-02-02", "9.00", "REFUND SHOP"),
        transaction("2024-02-03", "-30.00", "RAIL TICKETS"),
        transaction("2023-02-04", "-1.00", "STAMP"),
        transaction("2024-02-05", "-2.22", "ONLY HERE"),
    ]
    bank = [
        ExportedRow(("2024-02-01",), Decimal("-5.00"), "coffee corner"),
        ExportedRow(("2024-02-01", "2024-02-02"), Decimal("-5.00"), "coffee corner"),
        ExportedRow(("2024-02-02",), Decimal("-9.00"), "shop refund"),
        ExportedRow(("2024-02-03",), Decimal("-33.00"), "rail tickets ltd"),
        ExportedRow(("2024-02-04",), Decimal("-1.00"), "stamp"),
        ExportedRow(("2024-02-08",), Decimal("-4.44"), "only there"),
    ]
    found = compare_with_export(read, bank)
    assert (len(found.equal), len(found.differing), len(found.missing), len(found.extra)) == (2, 3, 1, 1)
    assert found.missing == bank[-1:]
    assert found.extra == read[-1:]
    assert not found.is_same
    assert compare_with_export(read[:2], bank[:2]).is_same
