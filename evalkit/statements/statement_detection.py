"""Recognise bank statements as whole documents, before they are classified."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import DocumentError
from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start
from evalkit.statements.column_order import group_pages_into_lines
from evalkit.statements.layout_survey import find_line_dates
from evalkit.statements.statement_kinds import find_statement_kind
from evalkit.statements.text_lines import TextLine

BANK_STATEMENT_CODE = "BANK-STATEMENT"
#: Facts about patients that no bank prints: a hospital's account of payments is no bank statement.
_MEDICAL_FACTS = frozenset({"mrn", "date_of_birth", "accession", "visit"})
_MIN_ROWS = 3
#: An amount with cents; the other characters are marks, currencies and separators of thousands.
_AMOUNT = re.compile(r"\D{0,4}\d{1,3}[\d.,'’]{0,12}[.,]\d\d\D{0,3}")
#: An amount without cents at the end of a row; it counts only below titles of debits or credits.
_WHOLE_AMOUNT = re.compile(r"\D{0,4}\d{1,3}[\d,'’]{0,12}\D{0,3}")
#: Titles of columns that only tables of payments have; a chart of fluids has a balance too, in whole numbers.
_PAYMENT_TITLES = ("debit", "credit")
_MONEY_TITLES = (*_PAYMENT_TITLES, "balance")
#: Share of the looked-at pages that must have rows or balances: a statement among reports is left to the classification.
_MIN_PAGE_SHARE = 0.5
#: The first pages are enough; a record of a thousand pages is not searched for payments.
_MAX_PAGES = 6


def refuse_bank_statement(bundle: DocumentBundle) -> None:
    """Raise DocumentError BANK-STATEMENT if the document is a bank statement."""
    if is_bank_statement(bundle):
        raise DocumentError(
            "this is a bank statement: it has neither clinical documents nor forms",
            code=BANK_STATEMENT_CODE,
            remedy="Read the statement with a template of its bank: `evalkit build-template`, then `evalkit apply-template`.",
        )


def is_bank_statement(bundle: DocumentBundle) -> bool:
    """Return True if the first pages list dated payments of a bank.

    They have balances, columns of debits and credits, or the name of a kind of account above a column of amounts.
    """
    if any(fact.kind in _MEDICAL_FACTS for page in bundle.pages for fact in page.identifiers):
        return False
    lines_by_page = group_pages_into_lines(bundle.pages[:_MAX_PAGES])
    lines = [line for page_lines in lines_by_page for line in page_lines]
    vocabulary = load_bank_vocabulary()

    def has_titles(names: Sequence[str]) -> bool:
        title_patterns = [vocabulary.columns[name] for name in names]
        return any(_matches(line, [vocabulary.columns["date"]]) and _matches(line, title_patterns) for line in lines)

    are_cents_optional = has_titles(_PAYMENT_TITLES)
    rows = [
        line
        for line in lines
        if any(find_line_dates(line))
        and (_has_amount(line) or (are_cents_optional and _WHOLE_AMOUNT.fullmatch(line.words[-1].text)))
    ]
    openings, closings = (
        [line for line in lines if _matches(line, [pattern])] for pattern in (vocabulary.opening, vocabulary.closing)
    )
    has_balance = bool(openings and closings) or any(map(_has_amount, (*openings, *closings)))
    pages_with_money = {line.page_number for line in (*rows, *openings, *closings)}
    if len(rows) < _MIN_ROWS or len(pages_with_money) < _MIN_PAGE_SHARE * len(lines_by_page):
        return False
    return has_balance or has_titles(_MONEY_TITLES + (("amount",) if find_statement_kind(lines_by_page).kind else ()))


def _has_amount(line: TextLine) -> bool:
    return any(_AMOUNT.fullmatch(word.text) for word in line.words)


def _matches(line: TextLine, patterns: Sequence[str]) -> bool:
    return any(match_at_line_start(pattern, cell.text) for pattern in patterns for cell in line.cells)
