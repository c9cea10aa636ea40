"""Templates as files: written and read again, and faults that name their line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import UsageError
from evalkit.statements.alternative_readings import (
    build_opposite_reading,
    build_other_date_order,
    confirm_date_order,
    confirm_directions,
)
from evalkit.statements.statement_template import (
    StatementIdentity,
    StatementTemplate,
    TemplateStatus,
    parse_template_toml,
    render_template_toml,
)

TEXT = """\
template_id = "example"
version = 2
status = "draft"
identity = { bank = "Example Bank" }

[[region]]
pages = "first"
box = [0.05, 0.30, 0.95, 0.90]

[[region]]
pages = "later"
box = [0.05, 0.10, 0.95, 0.90]

[[column]]
name = "date"
x = [0.05, 0.15]
title = "Date"

[[column]]
name = "amount"
x = [0.80, 0.95]

[dates]
formats = ["%m/%d"]
period = ["statement period"]

[amounts]
decimal = "."

[[rows.section]]
heading = "deposits"
direction = "deposit"

[[reconciliation.total]]
label = "total deposits"
of = "deposits"
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line", "says"),
    [
        ("box = [0.05, 0.10, 0.95, 0.90]", "box = [0.05, 0.10, 0.95, 1.90]", 12, "x0 < x1 <= 1 and 0 <= y0 < y1 <= 1"),
        ("box = [0.05, 0.10, 0.95, 0.90]", "box = [0.95, 0.10, 0.05, 0.90]", 12, "0 <= x0 < x1 <= 1"),
        ("x = [0.80, 0.95]", "x = [0.95, 0.80]", 21, "x0, x1 with 0 <= x0 < x1 <= 1"),
        ('name = "date"', 'name = "day"', 15, "name"),
        ('formats = ["%m/%d"]', 'formats = ["%m/%m"]', 24, "not a date format"),
        ('period = ["statement period"]', 'period = ["("]', 25, "not a regular expression"),
        ('period = ["statement period"]', 'period = [".*"]', 25, "matches every line"),
        ('period = ["statement period"]', r"period = ['(?:\w|\w\w)+[!?]']", 25, "takes too long"),
        ('period = ["statement period"]', f'period = ["{"(" * 5000}"]', 25, "not a regular expression"),
        ('period = ["statement period"]', "period = ['(?x)a # b']", 25, "not a regular expression"),
        ('decimal = "."', 'decimal = ";"', 28, "decimal"),
        ('decimal = "."', 'decimal = "."\nfoo = 1', 29, "Extra inputs"),
        ('decimal = "."', 'deposit = ["minus"]', 27, "cannot mean a deposit and a withdrawal"),
        ('direction = "deposit"', 'direction = "in"', 32, "direction"),
        ('of = "deposits"', 'of = "fees"', 36, "of"),
        ("version = 2", "version = 0", 2, "version"),
        ('status = "draft"', 'status = "ready"', 3, "status"),
        ("version = 2", "version = = 2", 2, "line 2"),
    ],
)
def test_a_fault_names_its_line(right: str, wrong: str, line: int, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_template_toml(TEXT.replace(right, wrong), "bank.toml")
    assert "bank.toml" in raised.value.message
    assert f"line {line}" in raised.value.message
    assert says in raised.value.message


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ('name = "amount"', 'name = "balance"', "needs a column date, and a column amount or columns debit and credit"),
        ('name = "amount"', 'name = "date"', "more than one column is named"),
        ("[dates]", '[[column]]\nname = "debit"\nx = [0.6, 0.7]\n[dates]', "use either amount, or debit and credit"),
    ],
)
def test_columns_make_a_row(right: str, wrong: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_template_toml(TEXT.replace(right, wrong), "bank.toml")


def test_a_template_is_written_and_read_again() -> None:
    read = parse_template_toml(TEXT, "bank.toml")
    assert read.status is TemplateStatus.DRAFT
    assert parse_template_toml(render_template_toml(read), "again.toml") == read


@given(st.text(min_size=1), st.text())
def test_any_name_survives_the_file(bank: str, sign: str) -> None:
    read = parse_template_toml(TEXT, "bank.toml")
    named = read.model_copy(update={"identity": StatementIdentity(bank=bank, statement=sign, signs=(sign, bank))})
    assert parse_template_toml(render_template_toml(named), "again.toml") == named


@pytest.mark.parametrize(
    ("kinds", "page", "pages", "found"),
    [
        (("any",), 1, 1, "any"),
        (("first", "any"), 1, 1, "first"),
        (("first", "any"), 2, 3, "any"),
        (("first", "last", "any"), 1, 1, "first"),
        (("last", "any"), 1, 1, "last"),
        (("first", "later"), 1, 3, "first"),
        (("first", "later"), 2, 3, "later"),
        (("first", "later"), 3, 3, "later"),
        (("middle", "last", "later"), 2, 3, "middle"),
        (("middle", "last", "later"), 3, 3, "last"),
        (("middle", "last"), 1, 3, None),
        (("first",), 2, 2, None),
    ],
)
def test_each_page_takes_the_regions_of_its_kind(
    kinds: tuple[str, ...], page: int, pages: int, found: str | None
) -> None:
    tops = {"first": 0.1, "middle": 0.2, "last": 0.3, "later": 0.4, "any": 0.5}
    base = parse_template_toml(TEXT, "bank.toml").model_dump(mode="json", by_alias=True)
    base["region"] = [{"pages": kind, "box": [0, tops[kind], 1, 1]} for kind in kinds]
    regions = StatementTemplate.model_validate(base).find_regions(page, pages)
    assert tuple(region.box for region in regions) == (() if found is None else ((0, tops[found], 1, 1),))


def test_sign_proof_is_written_and_read() -> None:
    template = parse_template_toml(TEXT, "example")
    assert "sign_proof" not in render_template_toml(template)
    decided = confirm_directions(template)
    assert parse_template_toml(render_template_toml(decided), "example").amounts.sign_proof == ("person",)


def test_opposite_reading_names_no_proof() -> None:
    template = confirm_directions(parse_template_toml(TEXT, "example"))
    opposite = build_opposite_reading(template)
    assert (opposite.amounts.unmarked, opposite.amounts.balance) == ("withdrawal", "owed")
    assert opposite.amounts.deposit == template.amounts.withdrawal
    assert [section.direction for section in opposite.rows.section] == ["withdrawal"]
    assert opposite.amounts.sign_proof == ()


def test_other_date_order_is_built_if_both_fit() -> None:
    template = parse_template_toml(TEXT, "example")
    assert "alternative_formats" not in render_template_toml(template)
    assert build_other_date_order(template) is None
    ambiguous = template.model_copy(
        update={"dates": template.dates.model_copy(update={"alternative_formats": ("%d/%m",)})}
    )
    other = build_other_date_order(parse_template_toml(render_template_toml(ambiguous), "example"))
    assert other is not None
    assert (other.dates.formats, other.dates.alternative_formats) == (("%d/%m",), ("%m/%d",))
    assert build_other_date_order(confirm_date_order(other)) is None
