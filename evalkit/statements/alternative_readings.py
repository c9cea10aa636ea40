"""Alternative interpretations of a statement: signs, or day and month, swapped.

Reviewers compare them with the template's own reading; a person sees both and decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from evalkit.statements.dates import exchange_day_and_month
from evalkit.statements.statement_template import ColumnName, StatementTemplate

_OPPOSITE_DIRECTION: Mapping[str, str] = {"deposit": "withdrawal", "withdrawal": "deposit"}


def build_opposite_reading(template: StatementTemplate) -> StatementTemplate:
    """Build the template with deposits and withdrawals, held and owed, exchanged.

    It meets the same printed sums as the template, so only a person can choose between the two. It names no proof.
    """
    opposite = invert_balance_sign(invert_directions(template))
    return opposite.model_copy(update={"amounts": opposite.amounts.model_copy(update={"sign_proof": ()})})


def build_other_date_order(template: StatementTemplate) -> StatementTemplate | None:
    """Build the template with day and month exchanged; None if the order is certain.

    The order of the result is open as well: its ``alternative_formats`` are the template's formats.
    """
    dates = template.dates
    if not dates.alternative_formats:
        return None
    changes = {
        "formats": dates.alternative_formats,
        "period_formats": tuple(map(exchange_day_and_month, dates.period_formats)),
        "alternative_formats": dates.formats,
    }
    return template.model_copy(update={"dates": dates.model_copy(update=changes)})


def confirm_directions(template: StatementTemplate) -> StatementTemplate:
    """Return the template with directions that a person has decided."""
    return template.model_copy(update={"amounts": template.amounts.model_copy(update={"sign_proof": ("person",)})})


def confirm_date_order(template: StatementTemplate) -> StatementTemplate:
    """Return the template with an order of day and month that a person has decided."""
    return template.model_copy(update={"dates": template.dates.model_copy(update={"alternative_formats": ()})})


def invert_directions(template: StatementTemplate) -> StatementTemplate:
    """Build the template that reads deposits as withdrawals; balances keep their sign."""
    amount_rules, row_rules = template.amounts, template.rows
    inverted_marks = {
        "deposit": amount_rules.withdrawal,
        "withdrawal": amount_rules.deposit,
        "unmarked": _OPPOSITE_DIRECTION.get(amount_rules.unmarked, amount_rules.unmarked),
    }
    sections = tuple(
        section.model_copy(update={"direction": _OPPOSITE_DIRECTION[section.direction]})
        for section in row_rules.section
    )
    changes = {
        "amounts": amount_rules.model_copy(update=inverted_marks),
        "rows": row_rules.model_copy(update={"section": sections}),
    }
    return exchange_columns(template.model_copy(update=changes), "debit", "credit")


def invert_balance_sign(template: StatementTemplate) -> StatementTemplate:
    """Build the template that reads balances held as owed, or the other way round."""
    other_meaning = "held" if template.amounts.balance == "owed" else "owed"
    return template.model_copy(update={"amounts": template.amounts.model_copy(update={"balance": other_meaning})})


def exchange_columns(template: StatementTemplate, column_name: ColumnName, other_name: ColumnName) -> StatementTemplate:
    """Build the template in which two columns have exchanged their meanings."""
    exchanged_names: dict[ColumnName, ColumnName] = {column_name: other_name, other_name: column_name}
    columns = tuple(
        column.model_copy(update={"name": exchanged_names.get(column.name, column.name)}) for column in template.columns
    )
    return template.model_copy(update={"columns": columns})
