"""A template and what it reads: facts to check, and certainty of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import UsageError
from evalkit.statements.column_order import group_pages_into_lines
from evalkit.statements.dates import PartialDate, StatementPeriod, resolve_date
from evalkit.statements.reconciliation import ReconciliationReport, SumCheck, reconcile_statement
from evalkit.statements.reviewer_report import TemplateIssueCategory, TemplateIssueSeverity
from evalkit.statements.statement_parser import LeftoverText, ParsedStatement, Transaction, parse_statement_lines
from evalkit.statements.statement_template import StatementTemplate, TemplateStatus
from evalkit.statements.table_row import TableRow
from evalkit.statements.text_lines import PageWord, TextLine


@dataclass(frozen=True)
class AppliedTemplate:
    """A template, and what it reads from one statement."""

    template: StatementTemplate
    lines_by_page: tuple[tuple[TextLine, ...], ...]
    statement: ParsedStatement
    reconciliation: ReconciliationReport

    @classmethod
    def create(cls, template: StatementTemplate, bundle: DocumentBundle) -> AppliedTemplate:
        """Read the statement with the template and check its printed sums."""
        return cls.apply_to_lines(template, group_pages_into_lines(bundle.pages))

    def apply_other_template(self, template: StatementTemplate) -> AppliedTemplate:
        """Read the same pages with another template and check the printed sums."""
        return self.apply_to_lines(template, self.lines_by_page)

    @classmethod
    def apply_to_lines(
        cls, template: StatementTemplate, lines_by_page: tuple[tuple[TextLine, ...], ...]
    ) -> AppliedTemplate:
        """Read a statement whose words are already grouped into lines, by page."""
        statement = parse_statement_lines(template, lines_by_page)
        return cls(template, lines_by_page, statement, reconcile_statement(template, statement))

    def complete_years(self, last_year: int) -> AppliedTemplate:
        """Add the year to dates that the statement prints without a year.

        ``last_year``: of the last such row; rows before a New Year are of the year before. UsageError if all rows have
        their year, or the last one's day is not in that year.
        """
        rows = self.statement.transactions
        days = [PartialDate(None, int(row.date[2:4]), int(row.date[5:])) if row.is_year_open else None for row in rows]
        open_days = list(filter(None, days))
        last_day = open_days and open_days[0 if self.template.rows.order == "newest_first" else -1]
        if not last_day or (end := last_day.resolve_in_year(last_year)) is None:
            raise UsageError(
                f"no transaction without a year can be of {last_year}",
                code="TEMPLATE-YEAR",
                remedy="Leave out --year, or give the year of the statement's last transaction.",
            )
        dates = [day and resolve_date(day, StatementPeriod(None, end)) for day in days]
        dated = (
            row.model_copy(update={"date": day.isoformat()}) if day else row
            for row, day in zip(rows, dates, strict=True)
        )
        return replace(self, statement=self.statement.model_copy(update={"transactions": tuple(dated)}))

    @property
    def sum_checks(self) -> list[SumCheck]:
        """The checks of printed sums, without the check for rows repeated on other pages."""
        return [check for check in self.reconciliation.checks if check.name != "repeated_rows"]

    @property
    def has_all_sums_met(self) -> bool:
        """True if sums are printed, and the transactions add up to every one."""
        return bool(self.sum_checks) and all(check.is_met for check in self.sum_checks)

    def select_leftovers(self, *reasons: str) -> list[LeftoverText]:
        """Return the unread words in the regions, by the reasons for leaving them."""
        return [leftover for leftover in self.statement.left_over if leftover.reason in reasons]

    @cached_property
    def is_closed(self) -> bool:
        """True if every account's rows add up to its closing balance and all sums.

        What else is printed among the rows is then no transaction, whatever it looks like.
        """
        closed = {check.account for check in self.sum_checks if check.name == "closing_balance"}
        accounts = {row.account for row in self.statement.transactions}
        return bool(accounts) and accounts <= closed and self.has_all_sums_met


class TemplateFinding(NamedTuple):
    """An issue that a check raises, before it gets an id."""

    severity: TemplateIssueSeverity
    category: TemplateIssueCategory
    message: str
    page: int | None = None
    location: str = ""
    suggested_fix: str = ""
    expected: str = ""
    actual: str = ""


#: Confidence in an amount that no printed sum covers, at most.
_MAX_WITHOUT_SUM = 0.9
#: Confidence at most in an amount that a printed sum contradicts, or with a corrected character, and in all rows of a draft
#: whose directions nothing proves, or whose day and month may be exchanged.
_MAX_IN_DOUBT = 0.5


def rate_transactions(applied_template: AppliedTemplate) -> ParsedStatement:
    """Return the statement with a confidence, 0..1, for each transaction.

    It is the lowest of three: the date's words, the description's words, and the amount. An amount is certain if a
    printed sum that covers it is met.
    """
    rated_transactions = tuple(
        transaction.model_copy(update={"confidence": round(_rate_transaction(applied_template, transaction), 2)})
        for transaction in applied_template.statement.transactions
    )
    return applied_template.statement.model_copy(update={"transactions": rated_transactions})


def _rate_transaction(applied_template: AppliedTemplate, transaction: Transaction) -> float:
    words = [
        word
        for line in applied_template.lines_by_page[transaction.page - 1]
        for word in line.words
        if any(
            x0 <= word.center_x <= x1 and y0 <= (word.box[1] + word.box[3]) / 2 <= y1
            for x0, y0, x1, y1 in transaction.boxes
        )
    ]
    row = TableRow(applied_template.template, TextLine(transaction.page, tuple(words)))
    column_words = row.words_by_column
    amount_words = [word for name in ("debit", "credit", "amount") for word in column_words.get(name, ())]
    checks = [check for check in applied_template.sum_checks if _covers(check, transaction)]
    template = applied_template.template
    is_open = template.status is TemplateStatus.DRAFT and (
        not template.amounts.sign_proof or bool(template.dates.alternative_formats)
    )
    return min(
        _MAX_IN_DOUBT if is_open else 1.0,
        _find_lowest(column_words.get("date", ())),
        fmean([word.confidence for word in column_words.get("description", ())] or [1.0]),
        _rate_amount(checks, amount_words, is_corrected=transaction.is_mended),
    )


def _rate_amount(checks: Sequence[SumCheck], words: Sequence[PageWord], *, is_corrected: bool) -> float:
    if checks and all(check.is_met for check in checks):
        return 1.0
    return min(_find_lowest(words), _MAX_IN_DOUBT if checks or is_corrected else _MAX_WITHOUT_SUM)


def _find_lowest(words: Sequence[PageWord]) -> float:
    return min((word.confidence for word in words), default=1.0)


def _covers(check: SumCheck, transaction: Transaction) -> bool:
    """Return True if the transaction's amount is part of the checked sum."""
    if check.account != transaction.account:
        return False
    if check.name == "running_balance" and not check.is_met:
        return (check.page, check.expected) == (transaction.page, transaction.balance)
    return {
        "deposits": transaction.amount > 0,
        "withdrawals": transaction.amount < 0,
        "section_total": bool(transaction.section),
    }.get(check.name, True)
