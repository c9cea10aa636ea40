"""Faults that are planted in templates which read their statement well: every one is a row.

The examples of specification 004, "Severity Examples", are all among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from statements.drawn import draw
from statements.measuring import bundle_of

from evalkit.documents.bundle import DocumentBundle
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.rule_based_review import TemplateReviewer, review_by_rules
from evalkit.statements.statement_template import StatementTemplate
from evalkit.statements.template_builder import build_draft_template

Plain = dict[str, Any]
"""A template as plain values."""
AT = "2024-01-15T10:30:00Z"
_LAYOUT: TemplateReviewer = "layout_geometry"
_FINANCE: TemplateReviewer = "semantic_financial"


def _box(plain: Plain, side: int, value: Callable[[list[float]], float]) -> None:
    for region in plain["region"]:
        region["box"][side] = value(region["box"])


def _column(plain: Plain, *names: str) -> Plain:
    return next(one for name in names for one in plain["column"] if one["name"] == name)


def _rename(plain: Plain, **names: str) -> None:
    for column in plain["column"]:
        column["name"] = names.get(column["name"], column["name"])


def excluded(plain: Plain) -> None:
    plain["region"] = [{"pages": "any", "box": [0, 0.95, 1, 1]}]


def first_rows(plain: Plain) -> None:
    _box(plain, 1, lambda box: box[1] + 0.06)


def last_rows(plain: Plain) -> None:
    _box(plain, 3, lambda box: box[1] + 0.1)


def one_page_only(plain: Plain) -> None:
    plain["region"] = [{"pages": "first", "box": plain["region"][0]["box"]}]


def narrow(plain: Plain) -> None:
    at = max(column["x"][0] for column in plain["column"])
    _box(plain, 2, lambda _: at - 0.01)


def inverted(plain: Plain) -> None:
    _rename(plain, debit="credit", credit="debit")
    amounts = plain["amounts"]
    amounts["deposit"], amounts["withdrawal"] = amounts["withdrawal"], amounts["deposit"]
    amounts["unmarked"] = {"deposit": "withdrawal", "withdrawal": "deposit"}.get(
        amounts["unmarked"], amounts["unmarked"]
    )
    for section in plain["rows"]["section"]:
        section["direction"] = "withdrawal" if section["direction"] == "deposit" else "deposit"


def debts_held(plain: Plain) -> None:
    plain["amounts"]["balance"] = "held" if plain["amounts"]["balance"] == "owed" else "owed"


def balance_as_amount(plain: Plain) -> None:
    _rename(plain, amount="balance", balance="amount")


def balance_as_debit(plain: Plain) -> None:
    _rename(plain, debit="balance", balance="debit")


def text_as_date(plain: Plain) -> None:
    _rename(plain, date="description", description="date")


def overlapping(plain: Plain) -> None:
    left, right = sorted(plain["column"], key=lambda column: column["x"])[:2]
    left["x"][1] = right["x"][0] + 0.05


def first_lines_only(plain: Plain) -> None:
    plain["rows"]["continuation"] = "none"


def near_lines_only(plain: Plain) -> None:
    plain["rows"]["gap"] = 0.4


def another_date_format(plain: Plain) -> None:
    plain["dates"]["formats"] = ["%d. %b %Y"]


def days_and_months_exchanged(plain: Plain) -> None:
    other = {"%d": "%m", "%m": "%d"}
    formats = plain["dates"]["formats"]
    plain["dates"]["formats"] = [re.sub("%[dm]", lambda found: other[found[0]], one) for one in formats]


def a_format_too_many(plain: Plain) -> None:
    plain["dates"]["formats"] = [*plain["dates"]["formats"], "%d/%b"]


def period_not_named(plain: Plain) -> None:
    plain["dates"]["period"] = []


def other_decimal_sign(plain: Plain) -> None:
    plain["amounts"]["decimal"] = "," if plain["amounts"]["decimal"] == "." else "."


def no_sums(plain: Plain) -> None:
    plain["reconciliation"] = {}
    plain["column"] = [column for column in plain["column"] if column["name"] != "balance"]


def one_account(plain: Plain) -> None:
    plain["rows"]["accounts"] = []


def narrow_balance(plain: Plain) -> None:
    x = _column(plain, "balance")["x"]
    x[0] = x[1] - 0.2 * (x[1] - x[0])


def no_balance(plain: Plain) -> None:
    plain["column"] = [column for column in plain["column"] if column["name"] != "balance"]


def wide_blanks(plain: Plain) -> None:
    plain["rows"]["joint"] = "   "


def checks_ignored(plain: Plain) -> None:
    _rename(plain, check_number="other")


def checks_left_out(plain: Plain) -> None:
    plain["column"] = [column for column in plain["column"] if column["name"] != "check_number"]


def whole_page(plain: Plain) -> None:
    _box(plain, 1, lambda _: 0.0)
    _box(plain, 3, lambda _: 1.0)
    plain["rows"]["ends"] = []


def another_title(plain: Plain) -> None:
    _column(plain, "description")["title"] = "Transaction Text"


class Fault(NamedTuple):
    """One kind of fault, and what has to be said of it."""

    name: str
    plant: Callable[[Plain], None]
    reviewer: TemplateReviewer
    severity: str
    category: str
    shapes: tuple[str, ...]
    """The statements that can have it."""


_SIGNED = ("signed amounts", "parentheses", "CR and DR", "dollar signs, ruled")
_APART = ("debit and credit columns", "over several pages", "descriptions of several lines")
_MANY_LINES = ("descriptions of several lines", "European dates and decimals")
_LONG = ("over several pages", "newest first")

# fmt: off
FAULTS = (
    #     name                                             planted                    by        severity    category                   in
    Fault("the box excludes the table",                    excluded,                  _LAYOUT,  "critical", "bbox_accuracy",           (*_SIGNED, *_APART)),
    Fault("directions are exchanged",                      inverted,                  _FINANCE, "critical", "sign_logic",              (*_SIGNED, *_APART, "deposits and withdrawals in sections")),
    Fault("held and owed are exchanged",                   debts_held,                _FINANCE, "critical", "sign_logic",              (*_SIGNED, *_APART, "credit card")),
    Fault("the balance is mapped to the amount",           balance_as_amount,         _FINANCE, "critical", "column_mapping",          _SIGNED),
    Fault("the balance is mapped to the debits",           balance_as_debit,          _FINANCE, "critical", "column_mapping",          _APART),
    Fault("the box cuts off the first rows",               first_rows,                _LAYOUT,  "high",     "bbox_accuracy",           (*_SIGNED, *_APART)),
    Fault("the box cuts off the last rows",                last_rows,                 _LAYOUT,  "high",     "bbox_accuracy",           (*_SIGNED, *_APART)),
    Fault("later pages have no box",                       one_page_only,             _LAYOUT,  "high",     "bbox_accuracy",           _LONG),
    Fault("the box cuts off a column",                     narrow,                    _LAYOUT,  "high",     "bbox_accuracy",           (*_SIGNED, *_APART)),
    Fault("two columns overlap",                           overlapping,               _LAYOUT,  "high",     "column_mapping",          (*_SIGNED, *_APART)),
    Fault("the text is mapped to the date",                text_as_date,              _FINANCE, "high",     "date_format",             (*_SIGNED, *_APART)),
    Fault("dates are written otherwise",                   another_date_format,       _FINANCE, "high",     "date_format",             (*_SIGNED, *_APART)),
    Fault("days and months are exchanged",                 days_and_months_exchanged, _FINANCE, "high",     "date_format",             ("signed amounts", "debit and credit columns", "European dates and decimals")),
    Fault("only first lines are read",                     first_lines_only,          _LAYOUT,  "high",     "multiline_handling",      _MANY_LINES),
    Fault("only near lines are read",                      near_lines_only,           _LAYOUT,  "high",     "multiline_handling",      _MANY_LINES),
    Fault("the other decimal sign",                        other_decimal_sign,        _FINANCE, "high",     "column_mapping",          (*_SIGNED, *_APART)),
    Fault("two accounts are read as one",                  one_account,               _FINANCE, "high",     "reconciliation_strategy", ("two accounts",)),
    Fault("no printed sum is used",                        no_sums,                   _FINANCE, "high",     "reconciliation_strategy", ("no running balance", "credit card", *_SIGNED)),
    Fault("the balance's column is too narrow",            narrow_balance,            _FINANCE, "medium",   "column_mapping",          (*_SIGNED, *_APART)),
    Fault("the balance has no column",                     no_balance,                _FINANCE, "medium",   "column_mapping",          (*_SIGNED, *_APART)),
    Fault("blanks between the lines of a description",     wide_blanks,               _FINANCE, "medium",   "other",                   _MANY_LINES),
    Fault("check numbers are mapped to nothing",           checks_ignored,            _FINANCE, "medium",   "column_mapping",          ("check numbers",)),
    Fault("check numbers have no column",                  checks_left_out,           _FINANCE, "medium",   "column_mapping",          ("check numbers",)),
    Fault("the box is the whole page",                     whole_page,                _LAYOUT,  "low",      "bbox_accuracy",           (*_SIGNED, *_APART)),
    Fault("a format of dates that is not used",            a_format_too_many,         _FINANCE, "low",      "date_format",             (*_SIGNED, *_APART)),
    Fault("a title that is not printed",                   another_title,             _LAYOUT,  "low",      "other",                   (*_SIGNED, *_APART)),
    Fault("the year is guessed",                           period_not_named,          _FINANCE, "low",      "date_format",             ("debit and credit columns", "one date for several rows")),
)
# fmt: on


class Caught(NamedTuple):
    """What the reviewer said of one planted fault."""

    is_caught: bool
    """The right reviewer names the right category, no milder than it is."""
    said: tuple[tuple[str, str], ...]
    """Severity and category of each of the reviewer's issues."""


@lru_cache(maxsize=64)
def build_sound_template(shape: str, seed: int) -> tuple[DocumentBundle, StatementTemplate]:
    """A drawn statement and what the builder makes of it, each once: many faults are planted into the same."""
    with TemporaryDirectory() as folder:
        bundle = bundle_of(draw(shape, seed), Path(folder))
    return bundle, build_draft_template(bundle).template


def plant_template_fault(fault: Fault, shape: str, seed: int) -> Caught:
    """Plant the fault into the template of a statement of that shape, and ask its reviewer."""
    return plant_into_template(fault, *build_sound_template(shape, seed))


def plant_into_template(fault: Fault, bundle: DocumentBundle, template: StatementTemplate) -> Caught:
    """Plant the fault into a template that was sound, and ask its reviewer."""
    plain = template.model_dump(mode="json", by_alias=True)
    fault.plant(plain)
    reading = AppliedTemplate.create(StatementTemplate.model_validate(plain), bundle)
    report = review_by_rules(reading, fault.reviewer, reviewer_id="r", reviewed_at=AT)
    said = tuple((issue.severity, issue.category) for issue in report.issues)
    return Caught((fault.severity, fault.category) in said, said)
