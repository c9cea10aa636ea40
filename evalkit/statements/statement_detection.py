"""Recognise a document that is a bank statement as a whole, before it is classified."""

from __future__ import annotations

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import DocumentError
from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start
from evalkit.statements.layout_survey import survey_layout
from evalkit.statements.text_lines import group_words_into_lines

BANK_STATEMENT_CODE = "BANK-STATEMENT"
#: Facts about patients that no bank prints: a hospital's account of payments is no bank statement.
_MEDICAL_FACTS = frozenset({"mrn", "date_of_birth", "accession", "visit"})
_MIN_ROWS = 3
#: Titles of columns that only tables of payments have.
_MONEY_TITLES = ("debit", "credit", "balance")
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
            remedy="Read it with a template of its bank: `evalkit build-template`, then `evalkit apply-template`.",
        )


def is_bank_statement(bundle: DocumentBundle) -> bool:
    """Return True if the first pages list dated payments of a bank.

    They have balances, columns of debits and credits, or the name of a kind of account above a column of amounts.
    """
    pages = bundle.pages[:_MAX_PAGES]
    if any(fact.kind in _MEDICAL_FACTS for page in bundle.pages for fact in page.identifiers):
        return False
    layout = survey_layout(tuple(map(group_words_into_lines, pages)))
    if layout is None or len(layout.date_column.dates_or_amounts) < _MIN_ROWS:
        return False
    title_names = _MONEY_TITLES + (("amount",) if layout.kind_evidence.kind else ())
    title_patterns = [load_bank_vocabulary().columns[name] for name in title_names]
    title_cells = [cell.text for line in layout.header_lines for cell in line.cells]
    is_of_money = any(labelled.kind in ("opening", "closing") for _, labelled in layout.labelled_amounts) or any(
        match_at_line_start(pattern, title) for pattern in title_patterns for title in title_cells
    )
    lines = [placed_date.line for placed_date in layout.date_column.dates_or_amounts]
    lines += [line for line, _ in layout.labelled_amounts]
    return is_of_money and len({line.page_number for line in lines}) >= _MIN_PAGE_SHARE * len(pages)
