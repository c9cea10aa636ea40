"""A template and what it reads from a statement: the facts that reviewers check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from evalkit.documents.bundle import DocumentBundle
from evalkit.statements.reconciliation import ReconciliationReport, SumCheck, reconcile_statement
from evalkit.statements.reviewer_report import TemplateIssueCategory, TemplateIssueSeverity
from evalkit.statements.statement_parser import LeftoverText, ParsedStatement, parse_statement_lines
from evalkit.statements.statement_template import StatementTemplate
from evalkit.statements.text_lines import TextLine, group_words_into_lines


@dataclass(frozen=True)
class AppliedTemplate:
    """A template and what it reads from one statement; both reviewers get the same."""

    template: StatementTemplate
    lines_by_page: tuple[tuple[TextLine, ...], ...]
    statement: ParsedStatement
    reconciliation: ReconciliationReport

    @classmethod
    def create(cls, template: StatementTemplate, bundle: DocumentBundle) -> AppliedTemplate:
        """Read the statement with the template and check its printed sums."""
        return cls.apply_to_lines(template, tuple(group_words_into_lines(page) for page in bundle.pages))

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

    @property
    def sum_checks(self) -> list[SumCheck]:
        """The checks of printed sums, without the check for rows repeated on other pages."""
        return [check for check in self.reconciliation.checks if check.name != "repeated_rows"]

    @property
    def has_all_sums_met(self) -> bool:
        """True if there is a printed sum, and the transactions add up to every one."""
        return bool(self.sum_checks) and all(check.is_met for check in self.sum_checks)

    def select_leftovers(self, *reasons: str) -> list[LeftoverText]:
        """Return the words in the regions that were not read for one of these reasons."""
        return [leftover for leftover in self.statement.left_over if leftover.reason in reasons]


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
