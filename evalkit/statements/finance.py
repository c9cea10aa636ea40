"""What the reviewer ``semantic_financial`` measures: whether the template understands what the statement says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from evalkit.documents.bundle import Box
from evalkit.statements.amounts import read_amount
from evalkit.statements.builder import printed_sums
from evalkit.statements.dates import has_year, read_day
from evalkit.statements.lines import Line
from evalkit.statements.reading import Found, Reading
from evalkit.statements.reconcile import Check
from evalkit.statements.row import Row
from evalkit.statements.survey import period_labels, survey
from evalkit.statements.template import ColumnName, StatementTemplate
from evalkit.statements.template import Reconciliation as Printed
from evalkit.statements.wording import matches, wording

_OTHER_WAY: Mapping[str, str] = {"deposit": "withdrawal", "withdrawal": "deposit"}
#: Columns that are taken for one another.
_PAIRS: Sequence[tuple[ColumnName, ColumnName]] = (("amount", "balance"), ("debit", "balance"), ("credit", "balance"))
#: Two blanks beside each other, one at an end, or one between each letter and the next.
_WIDE = re.compile(r"\s{2}|^\s|\s$|(?:\b\w\s){4}\w\b")
_CHECK_NUMBER = re.compile(r"\W?\d{2,8}\W?")
#: A heading of a table has so many titles that are known.
_TITLES = 3


def _dates(reading: Reading) -> Iterator[Found]:
    if lost := reading.left("its date cannot be read"):
        yield Found("high", "date_format", f"the dates of {len(lost)} rows cannot be read", lost[0].page, "dates")
    if lost := reading.left("its year is not known"):
        yield Found("high", "date_format", f"the year of {len(lost)} rows cannot be told", lost[0].page, "dates")


def _incomplete(reading: Reading) -> Iterator[Found]:
    reasons = ("it has an amount and no date", "it has a date and no amount", "it does not say what it was")
    for reason in reasons:
        if lost := reading.left(reason):
            yield Found("high", "column_mapping", f"{len(lost)} rows are not read: {reason}", lost[0].page, "columns")
    if lost := reading.left("no heading says which way the money went"):
        yield Found("high", "sign_logic", f"the signs of {len(lost)} rows are not known", lost[0].page, "amounts")


def _sums(reading: Reading) -> Iterator[Found]:
    """Sums that do not meet, with the reason where another reading of signs or columns meets all of them."""
    yield from _unused_sums(reading)
    unmet = [check for check in _sums_of(reading) if not check.is_met]
    if unmet:
        because = next((told for told, other in _others(reading.template) if _meets(reading, other)), None)
        if because:
            yield because
            return
    for check in unmet:
        said = f"the transactions do not make the printed sum: {check.name.replace('_', ' ')}"
        yield Found("high", "reconciliation_strategy", said, check.page, "reconciliation")


def _unused_sums(reading: Reading) -> Iterator[Found]:
    """Sums that are printed and not used: what the template reads is held against them all the same."""
    own, seen = _sums_of(reading), survey(reading.pages)
    sums = printed_sums(seen) if seen else Printed()
    other = reading.with_template(reading.template.model_copy(update={"reconciliation": sums}))
    printed = _sums_of(other)
    lost = len(other.statement.transactions) - len(reading.statement.transactions)
    unchecked = {row.account for row in reading.statement.transactions} - {check.account for check in own}
    fix = "Name the words beside the printed balances and totals"
    if lost > 0:
        said = f"{lost} rows are taken for printed sums"
        yield Found("high", "reconciliation_strategy", said, None, "reconciliation", fix)
    if unchecked & {check.account for check in printed}:
        said = "no printed sum is used to check the transactions, although there are some"
        yield Found("high", "reconciliation_strategy", said, None, "reconciliation", fix)
    elif unchecked or not own:
        said = "no printed sum is used to check the transactions"
        yield Found("medium", "reconciliation_strategy", said, None, "reconciliation")
    elif all(check.is_met for check in own):
        for check in printed:
            if not check.is_met:
                said = f"the transactions do not make a printed sum that is not used: {check.name.replace('_', ' ')}"
                yield Found("high", "reconciliation_strategy", said, check.page, "reconciliation", fix)


def _sums_of(reading: Reading) -> list[Check]:
    """The checks of sums; rows that the bank repeats are none."""
    return [check for check in reading.reconciliation.checks if check.name != "repeated_rows"]


def _meets(reading: Reading, other: StatementTemplate) -> bool:
    return reading.with_template(other).meets_its_sums


def _others(template: StatementTemplate) -> Iterator[tuple[Found, StatementTemplate]]:
    """Templates that understand one thing the other way, and what is wrong if it is they that meet the sums."""
    said = "signs are inverted: debits are shown as credits"
    yield Found("critical", "sign_logic", said, None, "amounts", "Exchange the directions"), _inverted(template)
    said = "the sign of the balance is inverted: what is held is shown as a debt, or the other way round"
    yield Found("critical", "sign_logic", said, None, "column balance", "Exchange held and owed"), _owed(template)
    for one, other in _PAIRS:
        if template.column(one) and template.column(other):
            said = f"wrong column mapped to the amount: {one} and {other} are exchanged"
            told = Found("critical", "column_mapping", said, None, f"column {one}", f"Exchange {one} and {other}")
            yield told, _exchanged(template, one, other)


def _spaces(reading: Reading) -> Iterator[Found]:
    """Blanks that nobody printed."""
    wide = [one for one in reading.statement.transactions if _WIDE.search(one.description)]
    if wide:
        said = f"extra blanks in the descriptions of {len(wide)} rows"
        yield Found("medium", "other", said, wide[0].page, "rows", "Join words and lines by one blank")


def _balances(reading: Reading) -> Iterator[Found]:
    """Amounts beside the columns: most often balances, whose column is too narrow."""
    decimal = reading.template.amounts.decimal
    lost = [
        one
        for one in reading.left("it stands in no column")
        if any(read_amount(word, decimal) for word in one.text.split())
    ]
    if lost:
        said = f"amounts of {len(lost)} rows stand in no column: that of the balance could be more precise"
        yield Found("medium", "column_mapping", said, lost[0].page, "column balance", "Widen it around its amounts")


def _check_numbers(reading: Reading) -> Iterator[Found]:
    """Numbers below the title of check numbers that the rows do not have."""
    there = [
        word
        for lines in reading.pages
        for title in _check_titles(lines)
        for line in lines
        if line.y > title[3] and Row(reading.template, line).day
        for word in line.words
        if title[0] < word.box[2] and word.box[0] < title[2] and _CHECK_NUMBER.fullmatch(word.text)
    ]
    missed = len(there) - sum(bool(one.check_number) for one in reading.statement.transactions)
    if there and missed > 0:
        said = f"{missed} check numbers are not captured"
        yield Found("medium", "column_mapping", said, None, "column check_number", "Map the column of check numbers")


def _check_titles(lines: Sequence[Line]) -> Iterator[Box]:
    """Where a heading of a table names check numbers; a row that speaks of a check is none."""
    names = wording().columns
    for line in lines:
        titles = [cell for cell in line.cells if any(matches(pattern, cell.text) for pattern in names.values())]
        if len(titles) >= _TITLES:
            yield from (cell.box for cell in titles if matches(names["check_number"], cell.text))


def _formats(reading: Reading) -> Iterator[Found]:
    """Formats of dates that no row is written in."""
    formats = reading.template.dates.formats
    rows = [row for lines in reading.pages for line in lines if (row := Row(reading.template, line)).day]
    used = {
        next((form for form in formats if read_day(text, (form,), is_recognised=row.line.is_recognised)), None)
        for row in rows
        if (text := " ".join(word.text for word in row.date_words))
    }
    if rows and (unused := [form for form in formats if form not in used]):
        said = f"no row is dated as {', '.join(unused)}"
        yield Found("low", "date_format", said, None, "dates", "Leave out what no row is written in")


def _guessed_year(reading: Reading) -> Iterator[Found]:
    """A year that is guessed although the statement prints its period."""
    dates = reading.template.dates
    if not dates.period and not all(map(has_year, dates.formats)) and period_labels(reading.pages)[0]:
        said = "the year is told by the latest date, although the statement prints its period"
        yield Found("low", "date_format", said, None, "dates", "Name the line that prints the period")


def _repeated(reading: Reading) -> Iterator[Found]:
    for check in reading.reconciliation.checks:
        if check.name == "repeated_rows":
            yield Found("medium", "reconciliation_strategy", "rows of earlier pages are repeated", check.page, "rows")


def _mended(reading: Reading) -> Iterator[Found]:
    mended = [one for one in reading.statement.transactions if one.is_mended]
    if mended:
        yield Found(
            "low", "provenance", f"amounts of {len(mended)} rows were misread and mended", mended[0].page, "amounts"
        )


def _inverted(template: StatementTemplate) -> StatementTemplate:
    """The same template, with deposits and withdrawals exchanged."""
    amounts, rows = template.amounts, template.rows
    signs = {
        "deposit": amounts.withdrawal,
        "withdrawal": amounts.deposit,
        "unmarked": _OTHER_WAY.get(amounts.unmarked, amounts.unmarked),
    }
    sections = tuple(one.model_copy(update={"direction": _OTHER_WAY[one.direction]}) for one in rows.section)
    changed = {
        "amounts": amounts.model_copy(update=signs),
        "rows": rows.model_copy(update={"section": sections}),
    }
    return _exchanged(template.model_copy(update=changed), "debit", "credit")


def _owed(template: StatementTemplate) -> StatementTemplate:
    """The same template, with balances held and owed exchanged."""
    other = "held" if template.amounts.balance == "owed" else "owed"
    return template.model_copy(update={"amounts": template.amounts.model_copy(update={"balance": other})})


def _exchanged(template: StatementTemplate, one: ColumnName, other: ColumnName) -> StatementTemplate:
    names: dict[ColumnName, ColumnName] = {one: other, other: one}
    columns = tuple(
        column.model_copy(update={"name": names.get(column.name, column.name)}) for column in template.columns
    )
    return template.model_copy(update={"columns": columns})


CHECKS = (
    *(_dates, _incomplete, _sums, _repeated, _mended),
    *(_spaces, _balances, _check_numbers, _formats, _guessed_year),
)
