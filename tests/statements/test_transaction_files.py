"""Files of transactions: what is written is what other programs, and we, read back."""

from __future__ import annotations

import csv
import io
import zipfile
from decimal import Decimal
from pathlib import Path

import pytest
from lxml import etree

from evalkit.core.spreadsheets import unescape_formula
from evalkit.errors import UsageError
from evalkit.statements.bank_export import read_bank_export
from evalkit.statements.statement_parser import ParsedStatement, PrintedSum, Transaction
from evalkit.statements.statement_template import StatementTemplate
from evalkit.statements.transaction_files import StatementReading, select_file_writer

TEXTS = (
    "=HYPERLINK(1)",
    "+49 170",
    "-5 refund",
    "@home",
    "\tTab",
    " =1+1",
    "'=1",
    "'tis",
    'Café, "Bar"',
    "00123",
    "1E5",
)


def reading(
    texts: tuple[str, ...] = TEXTS, accounts: tuple[str, ...] = ("",), balance: str = "held"
) -> StatementReading:
    template = StatementTemplate.model_validate({
        "template_id": "bank_v1", "identity": {"bank": "Bank"}, "region": [{"box": (0, 0, 1, 1)}],
        "column": [{"name": "date", "x": (0, 0.2)}, {"name": "amount", "x": (0.8, 1)}],
        "dates": {"formats": ["%d/%m/%Y"]}, "amounts": {"balance": balance},
    })  # fmt: skip
    rows = tuple(
        Transaction(
            date=f"2024-02-{day:02}", description=text, amount=Decimal(f"{day - 3}.10"), balance=Decimal("1234567890.12"),
            page=1, boxes=(), account=account, confidence=0.97,
        )
        for account in accounts
        for day, text in enumerate(texts, 1)
    )  # fmt: skip
    closing = PrintedSum(
        kind="closing", value=Decimal("7.50"), label="Closing", page=1, box=(0, 0, 1, 1), account=accounts[0]
    )
    return StatementReading(
        template, ParsedStatement(template_id="bank_v1", version=1, transactions=rows, sums=(closing,))
    )


def written(name: str, source: StatementReading) -> bytes:
    return select_file_writer(Path(name))(source)


def test_csv_text_is_no_formula_and_comes_back_equal() -> None:
    rows = list(csv.DictReader(io.StringIO(written("a.csv", reading()).decode(), newline="")))
    assert list(rows[0]) == ["date", "description", "amount", "balance", "page", "confidence"]
    assert not [row for row in rows if row["description"].lstrip(" ")[:1] in tuple("=+-@\t")]
    assert tuple(unescape_formula(row["description"]) for row in rows) == TEXTS
    assert (rows[0]["amount"], rows[0]["balance"], rows[0]["confidence"]) == ("-2.10", "1234567890.12", "0.97")


def test_csv_names_accounts_and_currencies_if_several() -> None:
    table = written("a.csv", reading(accounts=("Konto EUR 1", "Konto CHF 2"))).decode()
    rows = list(csv.DictReader(io.StringIO(table, newline="")))
    assert list(rows[0])[5:] == ["account", "currency", "confidence"]
    assert {(row["account"], row["currency"]) for row in rows} == {("Konto EUR 1", "EUR"), ("Konto CHF 2", "CHF")}


def test_xlsx_cells_have_types() -> None:
    archive = zipfile.ZipFile(io.BytesIO(written("A.XLSX", reading())))
    names = {"s": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    sheet = etree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    shared = etree.fromstring(archive.read("xl/sharedStrings.xml"))
    strings = ["".join(node.itertext()) for node in shared.findall("s:si", names)]
    assert not sheet.findall(".//s:f", names), "no cell is a formula"
    cells = {cell.get("r"): cell for cell in sheet.iterfind(".//s:c", names)}
    texts = [cells[f"B{row}"] for row in range(2, 2 + len(TEXTS))]
    assert {cell.get("t") for cell in texts} == {"s"}
    assert tuple(strings[int(cell.findtext("s:v", namespaces=names))] for cell in texts) == TEXTS
    assert cells["C2"].get("t") is None
    assert Decimal(cells["D2"].findtext("s:v", namespaces=names)) == Decimal("1234567890.12")


def test_a_year_that_is_not_known_stays_open() -> None:
    source = reading(("RENT",))
    rows = tuple(row.model_copy(update={"date": "--02-01"}) for row in source.statement.transactions)
    source = source._replace(statement=source.statement.model_copy(update={"transactions": rows}))
    assert b"--02-01,RENT" in written("a.csv", source)
    assert b"--02-01" in zipfile.ZipFile(io.BytesIO(written("a.xlsx", source))).read("xl/sharedStrings.xml")
    with pytest.raises(UsageError, match="the year of 1 row, and OFX"):
        written("a.ofx", source)


@pytest.mark.parametrize("balance", ["held", "owed"])
def test_ofx_is_read_back_and_ids_are_stable(balance: str, tmp_path: Path) -> None:
    source = reading((*TEXTS, "a\x07bell", "same", "same"), ("Konto 123456 EUR", "Konto 99"), balance)
    content = written("a.ofx", source)
    tree = etree.fromstring(content)
    ids = [node.text for node in tree.iter("FITID")]
    assert len(set(ids)) == len(ids) == len(source.statement.transactions)
    reversed_rows = source.statement.model_copy(update={"transactions": source.statement.transactions[::-1]})
    again = etree.fromstring(written("a.ofx", source._replace(statement=reversed_rows)))
    assert {node.text for node in again.iter("FITID")} == set(ids), "an id does not depend on the place"
    assert [node.text for node in tree.iter("ACCTID")] == ["123456", "bank_v1"]
    assert [node.text for node in tree.iter("CURDEF")] == ["EUR", "XXX"]
    assert [node.text for node in tree.iter("BALAMT")] == ["7.50"]
    assert all(len(node) == 2 for node in tree.iter("STATUS"))
    assert tree.find("CREDITCARDMSGSRSV1" if balance == "owed" else "BANKMSGSRSV1") is not None
    (tmp_path / "a.ofx").write_bytes(content)
    rows = read_bank_export(tmp_path / "a.ofx")
    drawn = source.statement.transactions
    assert [(row.dates, row.amount) for row in rows] == [((one.date,), one.amount) for one in drawn]
    assert [row.description for row in rows[:11]] == [text.strip() for text in TEXTS]
