"""A bank prints its next statements in another way: a stable template says what it no longer fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from statements.conftest import BuildStatement
from statements.drawn import SHAPES, Entry, Shape, draw, us
from statements.measuring import bundle_of

from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.statement_template import TemplateStatus
from evalkit.statements.template_drift import find_template_drift

NAME = "signed amounts"


def _move_amounts(shape: Shape) -> Shape:
    moved = {"amount": 300.0, "balance": 420.0}
    columns = tuple((name, title, moved.get(name, x), side) for name, title, x, side in shape.columns)
    return replace(shape, columns=columns)


def _add_fees(shape: Shape) -> Shape:
    def add_fee(entry: Entry, shape: Shape) -> dict[str, str]:
        return {"amount": us(entry.amount), "balance": us(entry.balance), "fee": "0.25"}

    date, text, *money = shape.columns
    return replace(shape, columns=(date, text, ("fee", "Fee", 360, "r"), *money), cells=add_fee)


def _exchange_day_and_month(shape: Shape) -> Shape:
    return replace(shape, day=lambda day: f"{day:%d/%m/%Y}")


def _find_drift(template: AppliedTemplate, folder: Path, month: int = 1) -> str:
    bundle = bundle_of(draw(NAME, 1, month=month), folder)
    stable = template.template.model_copy(update={"status": TemplateStatus.STABLE})
    return "; ".join(find_template_drift(template.create(stable, bundle), bundle.sha256))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_move_amounts, "“Balance” is printed 2"),
        (_add_fees, "a column “Fee” that the template does not know"),
        (_exchange_day_and_month, "another order: day, month, year"),
    ],
)
def test_a_changed_layout_is_named(
    change: Callable[[Shape], Shape],
    words: str,
    build_statement: BuildStatement,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    template = build_statement(NAME, 1).build
    monkeypatch.setitem(SHAPES, NAME, change(SHAPES[NAME]))
    assert words in _find_drift(template, tmp_path)


def test_a_moved_table_and_lost_sums_are_named(build_statement: BuildStatement, tmp_path: Path) -> None:
    """The template expects the table further down, as if the bank had moved it up."""
    built = build_statement(NAME, 1).build
    boxes = [(x0, y0 + 0.2, x1, y1) for x0, y0, x1, y1 in (region.box for region in built.template.regions)]
    regions = tuple(
        region.model_copy(update={"box": box}) for region, box in zip(built.template.regions, boxes, strict=True)
    )
    drift = _find_drift(replace(built, template=built.template.model_copy(update={"regions": regions})), tmp_path)
    assert "the table on page 1 is printed elsewhere" in drift
    assert "no longer met" in drift


def test_next_months_without_a_change_have_no_drift(build_statement: BuildStatement, tmp_path: Path) -> None:
    for month in (1, 2, 3):
        assert _find_drift(build_statement(NAME, 1).build, tmp_path, month) == ""
