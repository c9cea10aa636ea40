"""How right a reading is: rows of drawn statements, and of the statement in ../shared/data/bank."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from statements.drawn import Drawn

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.statements.statement_parser import ParsedStatement

BANK = Path(os.environ.get("EVALKIT_SHARED", Path(__file__).parents[2].parent / "shared")) / "data" / "bank"


class Rows(NamedTuple):
    """How many rows there are, were read, and are exactly right: date, description, amount, balance and page."""

    there: int
    read: int
    right: int


def bundle_of(drawn: Drawn, folder: Path, recogniser: PageOcrSettings | None = None) -> DocumentBundle:
    path = folder / "statement.pdf"
    path.write_bytes(drawn.pdf)
    return read_document(path, doc_id="statement", processing_timestamp="", ocr_settings=recogniser)


def rows_of(drawn: Drawn, statement: ParsedStatement, *, is_scanned: bool = False) -> Rows:
    """A row that was read twice is right once. Of scans blanks do not count: where words end, the engine decides."""

    def keys(rows: Iterable[Any]) -> Counter[tuple[Any, ...]]:
        return Counter(
            (one.date, one.description.replace(" ", "") if is_scanned else one.description, one.amount, one.balance,
             one.check_number, one.page)
            for one in rows
        )  # fmt: skip

    there, found = keys(drawn.rows), keys(statement.transactions)
    return Rows(there.total(), found.total(), (there & found).total())


def labels() -> dict[str, Any]:
    (line,) = (BANK / "labels.jsonl").read_text().splitlines()
    return dict(json.loads(line))


def bank_rows(statement: ParsedStatement) -> Rows:
    """Page by page in their order; where the label has no date, none is asked for."""
    right = there = 0
    for page in labels()["pages_truth"]:
        found = [one for one in statement.transactions if one.page == page["page"]]
        there += len(page["transactions"])
        right += sum(_is_right(wanted, one) for wanted, one in zip(page["transactions"], found, strict=False))
    return Rows(there, len(statement.transactions), right)


def _is_right(wanted: dict[str, Any], found: Any) -> bool:
    is_dated = wanted["date"] is None or _iso(wanted["date"]) == found.date
    return is_dated and (wanted["description"], Decimal(wanted["amount"])) == (found.description, found.amount)


def _iso(american: str) -> str:
    month, day, year = map(int, american.split("/"))
    return date(year, month, day).isoformat()
