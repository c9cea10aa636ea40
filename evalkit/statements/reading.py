"""A template beside what it reads: the facts that reviewers judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from evalkit.documents.bundle import DocumentBundle
from evalkit.statements.apply import LeftOver, Statement, apply_to_lines
from evalkit.statements.lines import Line, lines_of
from evalkit.statements.reconcile import Reconciliation, reconcile
from evalkit.statements.report import Category, Severity
from evalkit.statements.template import StatementTemplate


@dataclass(frozen=True)
class Reading:
    """A template, and what it reads: the same for both reviewers."""

    template: StatementTemplate
    pages: tuple[tuple[Line, ...], ...]
    statement: Statement
    reconciliation: Reconciliation

    @classmethod
    def of(cls, template: StatementTemplate, bundle: DocumentBundle) -> Reading:
        """The statement as the template reads it."""
        return cls._read(template, tuple(lines_of(page) for page in bundle.pages))

    def with_template(self, template: StatementTemplate) -> Reading:
        """The same pages, read by another template."""
        return self._read(template, self.pages)

    @classmethod
    def _read(cls, template: StatementTemplate, pages: tuple[tuple[Line, ...], ...]) -> Reading:
        statement = apply_to_lines(template, pages)
        return cls(template, pages, statement, reconcile(template, statement))

    @property
    def meets_its_sums(self) -> bool:
        """Whether there are sums, and all of them are met; rows that the bank repeats are no sum."""
        sums = [check.is_met for check in self.reconciliation.checks if check.name != "repeated_rows"]
        return bool(sums) and all(sums)

    def left(self, *reasons: str) -> list[LeftOver]:
        """What was left over for one of these reasons."""
        return [one for one in self.statement.left_over if one.reason in reasons]


class Found(NamedTuple):
    """An issue before it is numbered."""

    severity: Severity
    category: Category
    message: str
    page: int | None = None
    location: str = ""
    fix: str = ""
