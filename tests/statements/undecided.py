"""A statement that does not say which way the money went, and one whose day and month can be exchanged."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pymupdf
from statements.drawn import Drawn, Truth
from statements.spoilt import Spoilt

from evalkit.documents.readers import read_document
from evalkit.statements.review_cycles import Escalation, ReportedIssue, TemplateCase
from evalkit.statements.reviewer_report import TemplateIssue
from evalkit.statements.statement_template import render_template_toml
from evalkit.statements.template_builder import build_draft_template

_ROWS = (
    ("RESTAURANT", "61.20", 3), ("PAYMENT THANK YOU", "-240.00", 5), ("BOOK SHOP", "18.45", 8), ("RAIL TICKETS", "33.00", 9),
    ("PHARMACY", "7.10", 11), ("REFUND", "-12.00", 12),
)  # fmt: skip


def draw_month(month: int, *, is_silent: bool = False) -> Drawn:
    """A month in which charges or deposits have no mark: both readings meet the balances.

    ``is_silent``: no mark, balance or description says which it is, and the month is a word.
    """
    page = (document := pymupdf.open()).new_page()
    pen = lambda x, y, text: page.insert_text((x, y), text, fontsize=10)  # noqa: E731
    opening = Decimal(300 + month)
    amounts = [Decimal(amount) + (month if not amount.startswith("-") else 0) for _, amount, _ in _ROWS]
    pen(50, 60, "Northgate Bank")
    amounts = list(map(abs, amounts)) if is_silent else amounts
    for y, label, balance in ((110, "Opening balance", opening), (126, "Closing balance", opening + sum(amounts))):
        if not is_silent:
            pen(50, y, label)
            pen(300, y, f"{balance:,.2f}")
    for x, title in ((50, "Date"), (140, "Description"), (430, "Amount")):
        pen(x, 170, title)
    truth = []
    for number, ((text, _, day), amount) in enumerate(zip(_ROWS, amounts, strict=True)):
        y = 190 + 16 * number
        pen(50, y, f"{day} {'JanFebMar'[3 * month - 3 : 3 * month]} 2024" if is_silent else f"{month:02}/{day:02}/2024")
        pen(140, y, f"ITEM {number + 101}" if is_silent else text)
        pen(430, y, f"{amount:,.2f}")
        truth.append(Truth(f"2024-{month:02}-{day:02}", text, -amount, None, 1))
    return Drawn(bytes(document.tobytes()), tuple(truth), 1)


def undecided_case(folder: Path, name: str, category: Any = "sign_logic", month: int = 2) -> Spoilt:
    """What goes to a person: a template that reads all, and one grave doubt about it."""
    drawn = draw_month(month)
    path = folder / f"{name}.pdf"
    path.write_bytes(drawn.pdf)
    bundle = read_document(path, doc_id=name, processing_timestamp="")
    template = build_draft_template(bundle).template.model_copy(update={"template_id": f"{name}_bank"})
    amounts = template.amounts.model_copy(update={"sign_proof": (), "unmarked": "deposit", "balance": "held"})
    dates = template.dates.model_copy(update={"formats": ("%m/%d/%Y",), "alternative_formats": ("%d/%m/%Y",)})
    template = template.model_copy(update={"amounts": amounts, "dates": dates})
    issue = TemplateIssue(
        issue_id="semantic_financial_001",
        severity="high",
        category=category,
        message={
            "sign_logic": "no mark, title, heading or printed sum proves which way the money went",
            "date_format": "the day or the month may be first: both orders fit",
        }[category],
        page=1,
    )
    case = TemplateCase(
        template_id=template.template_id,
        template=render_template_toml(template),
        issues=(ReportedIssue(issue=issue, reported_by=("semantic_financial",)),),
        escalation=Escalation(escalation_reason="max_retries_exceeded", attempt_count=1),
    )
    return Spoilt(drawn, bundle, template, case)
