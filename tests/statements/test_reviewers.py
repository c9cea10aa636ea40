"""Planted faults are found by the right reviewer, in the right category; sound templates pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from statements.drawn import SHAPES, draw
from statements.measuring import bundle_of

from evalkit.statements.builder import build
from evalkit.statements.reviewers import Reading, Reviewer, review
from evalkit.statements.template import StatementTemplate

Plain = dict[str, Any]
AT = "2024-01-15T10:30:00Z"
SCHEMA = json.loads((Path(__file__).parent / "schemas" / "reviewer_report.json").read_text())


def found(reading: Reading, reviewer: Reviewer) -> list[tuple[str, str]]:
    report = review(reading, reviewer, reviewer_id="r", at=AT)
    jsonschema.validate(report.to_json(), SCHEMA)
    assert report.is_passed is not any(issue.severity in ("high", "critical") for issue in report.issues)
    return [(issue.severity, issue.category) for issue in report.issues]


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if not shape.is_scanned])
def test_sound_templates_pass(name: str, tmp_path: Path) -> None:
    for seed in range(20, 22):
        bundle = bundle_of(draw(name, seed), tmp_path)
        reading = Reading.of(build(bundle).template, bundle)
        assert found(reading, "layout_geometry") == found(reading, "semantic_financial") == []


def _boxes(plain: Plain, at: int, value: float) -> None:
    for region in plain["region"]:
        region["box"][at] = value


def _excluded(plain: Plain) -> None:
    plain["region"] = [{"pages": "any", "box": [0, 0.95, 1, 1]}]


def _first_rows(plain: Plain) -> None:
    _boxes(plain, 1, plain["region"][0]["box"][1] + 0.06)


def _last_rows(plain: Plain) -> None:
    _boxes(plain, 3, plain["region"][0]["box"][1] + 0.1)


def _narrow(plain: Plain) -> None:
    _boxes(plain, 2, plain["column"][-1]["x"][0] - 0.01)


def _rename(plain: Plain, **names: str) -> None:
    for column in plain["column"]:
        column["name"] = names.get(column["name"], column["name"])


def _inverted(plain: Plain) -> None:
    _rename(plain, debit="credit", credit="debit")
    amounts = plain["amounts"]
    amounts["deposit"], amounts["withdrawal"] = amounts["withdrawal"], amounts["deposit"]
    amounts["unmarked"] = "withdrawal"


def _overlap(plain: Plain) -> None:
    plain["column"][0]["x"][1] = plain["column"][1]["x"][0] + 0.05


def _short_descriptions(plain: Plain) -> None:
    plain["rows"]["continuation"] = "none"


def _wrong_dates(plain: Plain) -> None:
    plain["dates"]["formats"] = ["%d.%m.%Y"]


def _no_labels(plain: Plain) -> None:
    plain["reconciliation"] = {}
    plain["column"] = [column for column in plain["column"] if column["name"] != "balance"]


@pytest.mark.parametrize(
    ("shape", "plant", "reviewer", "issue"),
    [
        ("signed amounts", _excluded, "layout_geometry", ("critical", "bbox_accuracy")),
        ("signed amounts", _first_rows, "layout_geometry", ("high", "bbox_accuracy")),
        ("debit and credit columns", _last_rows, "layout_geometry", ("high", "bbox_accuracy")),
        ("signed amounts", _narrow, "layout_geometry", ("high", "bbox_accuracy")),
        ("signed amounts", _inverted, "semantic_financial", ("critical", "sign_logic")),
        ("debit and credit columns", _inverted, "semantic_financial", ("critical", "sign_logic")),
        ("signed amounts", lambda plain: _rename(plain, amount="balance", balance="amount"), "semantic_financial", ("critical", "column_mapping")),
        ("signed amounts", _overlap, "layout_geometry", ("high", "column_mapping")),
        ("descriptions of several lines", _short_descriptions, "layout_geometry", ("high", "multiline_handling")),
        ("signed amounts", _wrong_dates, "semantic_financial", ("high", "date_format")),
        ("no running balance", _no_labels, "semantic_financial", ("medium", "reconciliation_strategy")),
    ],
)  # fmt: skip
def test_planted_faults_are_found(
    shape: str, plant: Callable[[Plain], None], reviewer: Reviewer, issue: tuple[str, str], tmp_path: Path
) -> None:
    for seed in range(30, 33):
        bundle = bundle_of(draw(shape, seed), tmp_path)
        plain = build(bundle).template.model_dump(mode="json", by_alias=True)
        plant(plain)
        assert issue in found(Reading.of(StatementTemplate.model_validate(plain), bundle), reviewer)
