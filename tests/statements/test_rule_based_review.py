"""Planted faults are found by the right reviewer, in the right category; sound templates pass."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from statements.conftest import BuildStatement
from statements.drawn import SHAPES, draw
from statements.faults import AT, FAULTS, Fault, plant_into_template
from statements.measuring import bundle_of
from statements.plain_pages import build_from_lines, row

from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.rule_based_review import TemplateReviewer, review_by_rules

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "reviewer_report.json").read_text())


def found(reading: AppliedTemplate, reviewer: TemplateReviewer) -> list[tuple[str, str]]:
    report = review_by_rules(reading, reviewer, reviewer_id="r", reviewed_at=AT)
    jsonschema.validate(report.model_dump(mode="json"), SCHEMA)
    assert report.is_passed is not any(issue.severity in ("high", "critical") for issue in report.issues)
    return [(issue.severity, issue.category) for issue in report.issues]


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if not shape.is_scanned])
def test_sound_templates_pass(name: str, build_statement: BuildStatement) -> None:
    for seed in (1, 2):
        _, bundle, build = build_statement(name, seed)
        reading = AppliedTemplate.create(build.template, bundle)
        assert found(reading, "layout_geometry") == found(reading, "semantic_financial") == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_faults_are_found(fault: Fault, build_statement: BuildStatement) -> None:
    for shape in fault.shapes[:2]:
        _, bundle, build = build_statement(shape, 1)
        assert plant_into_template(fault, bundle, build.template).is_caught


@pytest.mark.parametrize("name", ["signed amounts", "check numbers"])
def test_the_banks_next_month_raises_no_alarm(name: str, build_statement: BuildStatement, tmp_path: Path) -> None:
    template = build_statement(name, 1).build.template
    reading = AppliedTemplate.create(template, bundle_of(draw(name, 1, 1), tmp_path))
    assert found(reading, "layout_geometry") == found(reading, "semantic_financial") == []


@pytest.mark.parametrize(("closing", "is_passed"), [("130.50", True), ("130.40", False)])
def test_rows_that_close_need_no_other_lines(closing: str, is_passed: bool, tmp_path: Path) -> None:
    lines = [
        "Pebble Bank current account", [(50.0, "Opening balance"), (300.0, "100.00")], "",
        [(50.0, "Date"), (130.0, "Details"), (455.0, "Debit"), (533.0, "Credit")],
        row("02/13/2024", "RENT", "12.00", ""), row("02/15/2024", "SALARY", "", "50.00"), row("", "of which tax", "", "1.20"),
        row("02/24/2024", "SHOP", "7.50", ""), "", [(50.0, "Closing balance"), (300.0, closing)],
    ]  # fmt: skip
    applied = build_from_lines(lines, tmp_path)
    report = review_by_rules(applied, "semantic_financial", reviewer_id="1", reviewed_at=AT)
    assert report.is_passed is is_passed, report.issues


def test_a_minimum_payment_is_no_closing_balance(tmp_path: Path) -> None:
    lines = [
        "Regalia Credit Card", [(50.0, "Opening balance"), (300.0, "100.00")], [(50.0, "Closing balance"), (300.0, "140.00")],
        [(50.0, "Minimum amount due"), (300.0, "7.00")], "", [(50.0, "Date"), (130.0, "Details"), (510.0, "Amount")],
        row("02/13/2024", "SHOP", "50.00"), row("02/15/2024", "PAYMENT", "20.00 CR"), row("02/24/2024", "SHOP", "10.00"),
    ]  # fmt: skip
    applied = build_from_lines(lines, tmp_path)
    assert review_by_rules(applied, "semantic_financial", reviewer_id="1", reviewed_at=AT).is_passed
