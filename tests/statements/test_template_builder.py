"""The embedded builder: whatever a bank prints, the template that it writes reads the rows, and the sums are met."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import document, page
from statements.conftest import BuildStatement
from statements.drawn import SHAPES, draw
from statements.measuring import BANK, bank_rows, bundle_of, labels, rows_of

from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.errors import DocumentError
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.reconciliation import reconcile_statement
from evalkit.statements.reviewer_report import TemplateIssueCategory
from evalkit.statements.statement_template import TemplateStatus, parse_template_toml, render_template_toml
from evalkit.statements.template_builder import (
    BuilderRetryInput,
    ConsolidatedIssue,
    build_draft_template,
    build_next_draft,
)

ENOUGH = 0.98
SEEDS = (1, 2, 3)


@pytest.mark.parametrize("name", SHAPES)
def test_rows_are_read_and_sums_are_met(name: str, build_statement: BuildStatement) -> None:
    is_scanned = SHAPES[name].is_scanned
    if is_scanned and not resolve_ocr_engine():
        pytest.skip("no OCR engine is installed")
    there = right = 0
    for seed in SEEDS[:1] if is_scanned else SEEDS:
        drawn, _, made = build_statement(name, seed)
        rows = rows_of(drawn, made.statement, is_scanned=is_scanned)
        there, right = there + max(rows.there, rows.read), right + rows.right
        assert made.reconciliation.has_only_met_checks, [
            one.message for one in made.reconciliation.checks if not one.is_met
        ]
        assert len(made.reconciliation.checks) >= drawn.sums
        assert made.statement.outside == ()
    assert right >= ENOUGH * there


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if not shape.is_scanned])
def test_the_template_reads_the_next_months_statement(
    name: str, build_statement: BuildStatement, tmp_path: Path
) -> None:
    there = right = 0
    for seed in SEEDS:
        template = build_statement(name, seed).build.template
        drawn = draw(name, seed, month=1)
        statement = AppliedTemplate.create(template, bundle_of(drawn, tmp_path)).statement
        rows = rows_of(drawn, statement)
        there, right = there + max(rows.there, rows.read), right + rows.right
        report = reconcile_statement(template, statement)
        assert report.has_only_met_checks, [one.message for one in report.checks if not one.is_met]
    assert right >= ENOUGH * there


def test_the_template_reads_alone_what_it_was_built_from(build_statement: BuildStatement) -> None:
    _, bundle, made = build_statement("over several pages", 1)
    again = parse_template_toml(render_template_toml(made.template), "bank.toml")
    assert again.status is TemplateStatus.DRAFT
    assert AppliedTemplate.create(again, bundle).statement == made.statement
    assert reconcile_statement(again, made.statement) == made.reconciliation


def test_a_blank_back_page_changes_nothing(build_statement: BuildStatement) -> None:
    _, bundle, plain = build_statement("two accounts", 1)
    backed = bundle.model_copy(
        update={
            "pages": (*bundle.pages, page(len(bundle.pages) + 1, "", "blank")),
            "total_pages": len(bundle.pages) + 1,
        }
    )
    made = build_draft_template(backed)
    assert made.reconciliation.has_only_met_checks
    assert made.statement.transactions == plain.statement.transactions


def test_the_same_statement_makes_the_same_template(build_statement: BuildStatement, tmp_path: Path) -> None:
    drawn, _, made = build_statement("two accounts", 1)
    again = build_draft_template(bundle_of(drawn, tmp_path))
    assert render_template_toml(again.template) == render_template_toml(made.template)


@pytest.mark.skipif(not BANK.is_dir(), reason="the developers' data (../shared/data/bank) is not there")
def test_the_shared_statement_is_read_and_its_faults_are_told(tmp_path: Path) -> None:
    from evalkit.documents.readers import read_document

    made = build_draft_template(read_document(BANK / labels()["file"], doc_id="bank", processing_timestamp=""))
    rows = bank_rows(made.statement)
    assert rows.right >= ENOUGH * max(rows.there, rows.read)
    checks = {one.name: one for one in made.reconciliation.checks}
    assert not checks["closing_balance"].is_met
    assert (
        checks["closing_balance"].expected == (5_657.47).__class__("5657.47")
        or not made.reconciliation.has_only_met_checks
    )
    assert not checks["repeated_rows"].is_met
    assert "52 rows, on page 4, 5;" in checks["repeated_rows"].message
    assert len(made.statement.transactions) == rows.there  # they are told, not dropped
    assert made.statement.left_over == made.statement.outside == ()


def test_a_letter_has_no_table() -> None:
    with pytest.raises(DocumentError, match="no aligned dates and amounts"):
        build_draft_template(document("Dear Mr Smith,\nyour balance of 120.00 was due on 01/02/2024.\nYours"))


def retry(prior: str, *categories: TemplateIssueCategory) -> BuilderRetryInput:
    issues = tuple(
        ConsolidatedIssue(issue_id=f"issue_{at}", severity="high", category=category, message="wrong")
        for at, category in enumerate(categories)
    )
    return BuilderRetryInput(
        retry_attempt=2, prior_template=prior, consolidated_issues=issues, max_attempts_remaining=2
    )


@pytest.mark.parametrize(
    ("category", "spoiled"),
    [
        ("sign_logic", lambda text: text.replace('unmarked = "deposit"', 'unmarked = "withdrawal"')),
        ("column_mapping", lambda text: text.replace('name = "amount"', 'name = "AMOUNT"').replace('name = "balance"', 'name = "amount"').replace("AMOUNT", "balance")),
        ("date_format", lambda text: text.replace("%m/%d/%Y", "%d/%m/%Y")),
        ("bbox_accuracy", lambda text: text.replace("box = [", "box = [0.0, 0.0, 1.0, 0.2] #")),
    ],
)  # fmt: skip
def test_a_rejected_template_is_mended(
    category: TemplateIssueCategory, spoiled: object, build_statement: BuildStatement
) -> None:
    drawn, bundle, sound = build_statement("signed amounts", 1)
    wrong = spoiled(render_template_toml(sound.template))  # type: ignore[operator]
    assert rows_of(drawn, AppliedTemplate.create(parse_template_toml(wrong, "wrong"), bundle).statement).right < len(
        drawn.rows
    )
    made = build_next_draft(bundle, retry(wrong, category))
    assert made is not None
    assert made.template.version == 2
    assert rows_of(drawn, made.statement).right == len(drawn.rows)
    assert made.reconciliation.has_only_met_checks


@pytest.mark.parametrize("category", ["sign_logic", "column_mapping", "date_format", "bbox_accuracy"])
def test_a_right_reading_has_no_better_alternative(
    category: TemplateIssueCategory, build_statement: BuildStatement
) -> None:
    """A reviewer that finds fault with what is right gets no template that meets fewer sums."""
    _, bundle, prior = build_statement("signed amounts", 1)
    made = build_next_draft(bundle, retry(render_template_toml(prior.template), category))
    assert made is None or made.reconciliation.has_only_met_checks
    if category in ("sign_logic", "column_mapping"):
        assert made is None


def test_a_refuted_reading_is_never_built_again(build_statement: BuildStatement) -> None:
    """Whatever was tried stays excluded, until the hypotheses are exhausted."""
    drawn, bundle, prior = build_statement("signed amounts", 1)
    wrong = render_template_toml(prior.template).replace('unmarked = "deposit"', 'unmarked = "withdrawal"')
    rejected, readings = retry(wrong, "sign_logic"), []
    for _ in range(20):
        made = build_next_draft(bundle, rejected)
        if made is None:
            break
        readings.append(tuple(row.amount for row in made.statement.transactions))
        rejected = retry(render_template_toml(made.template), "sign_logic").model_copy(
            update={"earlier_attempts": rejected.list_tried_templates()}
        )
    assert made is None
    assert rows_of(drawn, prior.statement).right == len(drawn.rows)
    assert readings[0] == tuple(row.amount for row in prior.statement.transactions)
    assert len(set(readings)) == len(readings)


def test_a_statement_whose_sums_differ_keeps_them(tmp_path: Path) -> None:
    """What is printed does not add up: the rows are read as they stand, and the difference is told."""
    pages = [
        "Beginning balance    100.00",
        "Ending balance    999.99",
        "",
        "Date       Details                          Amount",
    ]
    rows = [f"01/{day:02}/2024 SHOP {day:<26} {-day}.00" for day in range(2, 12)]
    made = build_draft_template(document("\n".join([*pages, *rows])))
    assert [int(one.amount) for one in made.statement.transactions] == [-day for day in range(2, 12)]
    (closing,) = [one for one in made.reconciliation.checks if one.name == "closing_balance"]
    assert (closing.is_met, str(closing.expected), str(closing.found)) == (False, "999.99", "35.00")
