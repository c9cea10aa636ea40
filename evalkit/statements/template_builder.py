"""Build a template from one bank statement, by measuring or with a language model.

The builder tries hypotheses about the layout (the meaning of each column, the sign of unmarked amounts, date formats),
reads the statement with each, and keeps the hypothesis with which the transactions best add up to the printed sums. If
no hypothesis meets all sums, the result's reconciliation report shows which sums differ. A model's template is used
only if it reads the statement as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter, not_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from evalkit.core.grouping import group_pairs
from evalkit.core.records import LazyStrictRecord
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import DocumentError, UsageError
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Model, Usage
from evalkit.statements.amounts import MINUS_MARKS, SignMark, parse_amount
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start
from evalkit.statements.column_order import group_pages_into_lines
from evalkit.statements.date_survey import generate_date_hypotheses
from evalkit.statements.direction_proofs import DirectionEvidence
from evalkit.statements.layout_survey import (
    AlignedColumn,
    LayoutSurvey,
    build_pattern_with_any_numbers,
    survey_layout,
)
from evalkit.statements.reviewer_report import SeverityRank, TemplateIssueCategory, TemplateIssueSeverity
from evalkit.statements.rule_based_review import CHECKS_BY_REVIEWER
from evalkit.statements.statement_parser import LeftoverReason
from evalkit.statements.statement_template import (
    AmountRules,
    ColumnName,
    DateRules,
    Direction,
    RowRules,
    StatementIdentity,
    StatementTemplate,
    TemplateStatus,
    parse_template_toml,
)
from evalkit.statements.template_parts import (
    NARROW_MARGIN,
    build_columns,
    build_regions,
    derive_sum_labels,
    derive_sum_labels_by_value,
    derive_template_id,
    find_account_heading_patterns,
    find_balance_line_patterns,
    find_bank_name,
    find_direction_headings,
    find_repeated_line_patterns,
    find_table_box_by_page,
    find_table_end_patterns,
)
from evalkit.statements.template_questions import BuilderQuestion, TemplateQuestionContext
from evalkit.statements.template_retry import (
    ScoredDraft,
    TriedTemplate,
    choose_untried_draft,
    count_met_sums,
    is_tried,
)
from evalkit.statements.worker_thread import run_in_daemon_thread

if TYPE_CHECKING:
    from evalkit.documents.page_pictures import PageImage


@dataclass(frozen=True)
class TemplateHypothesis:
    """One possible meaning of the columns, signs, dates and rows of a statement."""

    column_names: tuple[ColumnName, ...]
    """The meaning of each column of amounts, from the left."""
    amount_rules: AmountRules
    date_rules: DateRules
    date_once: bool
    continuation_gap: float
    row_order: Literal["oldest_first", "newest_first"]
    has_wide_regions: bool
    """True: extend the regions by 3 % of the page up and down."""
    account_headings: tuple[str, ...]
    """Patterns of the headings of accounts."""
    initial_score: float
    """Score of the hypothesis before the statement is read with it; usual layouts score higher."""


#: Score for a column whose printed title agrees with its assumed meaning; a met sum scores 1.
_TITLE_WEIGHT = 0.4
#: Largest share of the rows whose only amounts are in columns that are not read.
_MAX_LOST_SHARE = 0.1
#: Further distances of a description's next line, in heights of a word, that are tried if reviewers criticised it.
_CONTINUATION_GAPS = (2.2, 3.4)
#: Penalty for headings of accounts that only their place shows; less than for a sum that is not met.
_ACCOUNTS_PENALTY = 0.5
#: Most columns of amounts that get a meaning, counted from the right; others are not read.
_MAX_AMOUNT_COLUMNS = 4
#: On statements of debts an amount with a minus is a payment.
_DEBT_MARKS = AmountRules(
    deposit=("minus", "trailing_minus", "parentheses", "cr"), withdrawal=("plus", "dr"), unmarked="withdrawal"
)
#: Sign conventions of a column ``amount`` (marks of deposits and withdrawals, direction of unmarked amounts), with a
#: score for how usual each convention is, on statements of money held and of debts.
_SIGN_CONVENTIONS: tuple[tuple[AmountRules, float, float], ...] = (
    (AmountRules(), 0.2, -0.2),
    (AmountRules(unmarked="withdrawal"), 0.0, 0.15),
    (_DEBT_MARKS, -0.2, 0.2),
    (AmountRules(unmarked="section"), 0.1, 0.2),
    (_DEBT_MARKS.model_copy(update={"unmarked": "section"}), -0.1, 0.25),
    (AmountRules(unmarked="balance"), 0.05, 0.05),
)
#: Score of the usual meaning of balances without a mark; more than of the usual order of columns.
_BALANCE_WEIGHT = 0.2
_SIDES: tuple[ColumnName, ColumnName] = ("debit", "credit")
#: Score if all descriptions name the direction in which they are read.
_WORDING_WEIGHT = 0.4
#: Score for reading a minus beside unmarked amounts below a heading as a reversal.
_REVERSAL_WEIGHT = 0.3
#: Score if all rows are read in the direction that the heading above them names.
_HEADING_WEIGHT = 0.5


def generate_hypotheses(
    layout: LayoutSurvey, complaints: Mapping[TemplateIssueCategory, float]
) -> Iterator[TemplateHypothesis]:
    """Generate all combinations of possible meanings of columns, signs and dates.

    ``complaints``: weights of the reviewers' issues by category; some categories add wider regions or larger line gaps.
    """
    gaps = (layout.continuation_gap, *(_CONTINUATION_GAPS if "multiline_handling" in complaints else ()))
    wide_region_options = (False, True) if "bbox_accuracy" in complaints else (False,)
    has_headings = bool(find_direction_headings(layout))
    date_hypotheses = list(generate_date_hypotheses(layout))
    if "date_format" not in complaints:
        date_hypotheses = [date_hypothesis for date_hypothesis in date_hypotheses if date_hypothesis.prior > -0.5]
    date_once_options = (False, True) if _has_undated_rows(layout) else (False,)
    account_options = [find_account_heading_patterns(layout, is_by_place=False)]
    if not account_options[0] and (headings := find_account_heading_patterns(layout, is_by_place=True)):
        account_options.append(headings)
    for column_names, title_prior in _generate_column_names(layout):
        for (date_rules, row_order, date_prior), (
            amount_rules,
            sign_prior,
        ), date_once, gap, has_wide_regions, account_headings in product(
            date_hypotheses,
            _generate_amount_rules(layout, column_names, has_headings=has_headings),
            date_once_options,
            gaps,
            wide_region_options,
            account_options,
        ):
            initial_score = (
                title_prior + date_prior + sign_prior - _ACCOUNTS_PENALTY * account_options.index(account_headings)
            )
            yield TemplateHypothesis(
                column_names,
                amount_rules,
                date_rules,
                date_once,
                gap,
                row_order,
                has_wide_regions,
                account_headings,
                initial_score,
            )


def _generate_column_names(layout: LayoutSurvey) -> Iterator[tuple[tuple[ColumnName, ...], float]]:
    amount_columns = layout.amount_columns[-_MAX_AMOUNT_COLUMNS:]
    skipped_names: tuple[ColumnName, ...] = tuple("other" for _ in layout.amount_columns[:-_MAX_AMOUNT_COLUMNS])
    title_names = [_match_titles_to_column_names(layout, amount_column) for amount_column in amount_columns]
    usual_combinations: tuple[tuple[ColumnName, ...], ...] = (
        ("amount",),
        ("amount", "balance"),
        ("debit", "credit"),
        ("debit", "credit", "balance"),
    )
    possible_names: tuple[ColumnName, ...] = ("amount", "debit", "credit", "balance", "other")
    for column_names in product(possible_names, repeat=len(amount_columns)):
        used_names = tuple(name for name in column_names if name != "other")
        sides = {"debit", "credit"} & set(used_names)
        has_one_meaning = not sides if "amount" in used_names else len(sides) == len(_SIDES)
        if (
            has_one_meaning
            and len(used_names) == len(set(used_names))
            and not _loses_rows(layout, amount_columns, column_names)
            and not (sides and _share_rows(*(amount_columns[column_names.index(name)] for name in _SIDES)))
        ):
            title_score = sum(map(_score_title, column_names, title_names))
            yield (
                (*skipped_names, *column_names),
                title_score + (0.1 if used_names in usual_combinations else 0) - 0.3 * column_names.count("other"),
            )


def _loses_rows(
    layout: LayoutSurvey, amount_columns: Sequence[AlignedColumn], column_names: Sequence[ColumnName]
) -> bool:
    """Return True if many rows have no amount but in columns that would not be read."""
    lines_by_use = group_pairs(
        (name == "other", id(placed_amount.line))
        for name, column in zip(column_names, amount_columns, strict=True)
        for placed_amount in column.dates_or_amounts
        if layout.is_row_start(placed_amount.line)
    )
    lost_lines = set(lines_by_use.get(True, ())) - set(lines_by_use.get(False, ()))
    return len(lost_lines) > _MAX_LOST_SHARE * len(layout.date_column.dates_or_amounts)


def _share_rows(left_column: AlignedColumn, right_column: AlignedColumn) -> bool:
    """Return True if most rows of the emptier column have amounts in both.

    0.00 is none.
    """
    left_lines, right_lines = (
        {id(placed.line) for placed in column.dates_or_amounts if not set(placed.text).isdisjoint("123456789")}
        for column in (left_column, right_column)
    )
    return 2 * len(left_lines & right_lines) > min(len(left_lines), len(right_lines))


def _score_title(name: ColumnName, names_in_title: set[str] | None) -> float:
    """Score the agreement of a column's meaning with its title; None: it has no title."""
    if names_in_title is None or (name == "amount" and names_in_title <= {"debit", "credit"}):
        return 0.0  # a single column of charges is one of amounts
    if not names_in_title:  # a quantity or a rate
        return -_TITLE_WEIGHT / 2 if name in ("debit", "credit") else 0.0
    if names_in_title == {"balance"} and name in ("amount", "debit", "credit"):
        return -1.0
    return _TITLE_WEIGHT if name in names_in_title else -_TITLE_WEIGHT


def _match_titles_to_column_names(layout: LayoutSurvey, amount_column: AlignedColumn) -> set[str] | None:
    """Return the meanings that the column's title may have; None if it has no title."""
    titles = amount_column.list_titles(layout.header_lines)
    name_by_direction: Mapping[Direction | None, str] = {"deposit": "credit", "withdrawal": "debit"}
    title_names = {
        name_by_direction.get(layout.kind_evidence.find_own_direction(title))
        or next(
            (name for name, pattern in load_bank_vocabulary().columns.items() if match_at_line_start(pattern, title)),
            "",
        )
        for title in titles
    }
    return title_names & {"amount", "debit", "credit", "balance"} if titles else None


def _generate_amount_rules(
    layout: LayoutSurvey, column_names: Sequence[ColumnName], *, has_headings: bool
) -> Iterator[tuple[AmountRules, float]]:
    number_format = {"decimal": layout.decimal_separator, "whole": layout.cents_optional}
    kind = layout.kind_evidence.kind
    printed_balances = [
        labelled_amount.amount.sign_mark
        for _, labelled_amount in layout.labelled_amounts
        if labelled_amount.kind in ("opening", "closing")
    ]
    # Balances that all have a minus are debts printed as such, also on a card.
    is_owed = kind is not None and kind.balance == "owed" and not (printed_balances and all(printed_balances))
    usual_balance: Literal["held", "owed"] = "owed" if is_owed else "held"
    balance_options: tuple[Literal["held", "owed"], ...] = (
        ("held", "owed") if printed_balances or "balance" in column_names else (usual_balance,)
    )
    marks = _find_marks(layout, column_names, ("amount",))
    # A minus beside debits or credits without a mark takes one of them back; in a column of its own it is the debits'.
    side_marks = [_find_marks(layout, column_names, (side,)) for side in _SIDES]
    number_format["reversals"] = any(None in marks and not marks.isdisjoint(MINUS_MARKS) for marks in side_marks)
    is_mixed = None in marks and bool(marks & set(MINUS_MARKS))
    title_direction = _find_amount_title_direction(layout, column_names)
    for (amount_rules, held_prior, owed_prior), balance in product(
        _SIGN_CONVENTIONS if "amount" in column_names else _SIGN_CONVENTIONS[:1], balance_options
    ):
        if (
            (amount_rules.unmarked == "section" and not has_headings)
            or (amount_rules.unmarked == "balance" and "balance" not in column_names)
            or _contradicts_marks(amount_rules, marks)
        ):
            continue
        yield (
            amount_rules.model_copy(update={**number_format, "balance": balance}),
            (owed_prior if is_owed else held_prior)
            - (_BALANCE_WEIGHT if balance != usual_balance else 0)
            + (_TITLE_WEIGHT if amount_rules.unmarked == title_direction else 0)
            + (
                _REVERSAL_WEIGHT
                if is_mixed and amount_rules.unmarked == "section" and amount_rules.deposit == _DEBT_MARKS.deposit
                else 0
            ),
        )


def _find_amount_title_direction(layout: LayoutSurvey, column_names: Sequence[ColumnName]) -> Direction | None:
    """Return the direction named by the title of column ``amount``, else None."""
    for name, amount_column in zip(column_names, layout.amount_columns, strict=True):
        title_names = _match_titles_to_column_names(layout, amount_column)
        if name == "amount" and title_names in ({"debit"}, {"credit"}):
            return "withdrawal" if title_names == {"debit"} else "deposit"
    return None


def _find_marks(
    layout: LayoutSurvey, column_names: Sequence[ColumnName], names: Sequence[ColumnName]
) -> set[SignMark | None]:
    """Return the marks in the columns of these names; None stands for amounts without."""
    return {
        amount.sign_mark
        for name, amount_column in zip(column_names, layout.amount_columns, strict=True)
        if name in names
        for placed_amount in amount_column.dates_or_amounts
        if (amount := parse_amount(placed_amount.text, layout.decimal_separator, cents_optional=layout.cents_optional))
    }


def _contradicts_marks(amount_rules: AmountRules, marks: set[SignMark | None]) -> bool:
    """Return True if amounts without a mark would mean the same as those with one.

    A plus beside amounts without a mark is a credit, whatever a minus would be.
    """
    printed_marks = marks - {None}
    if printed_marks <= {"plus", "cr"} and printed_marks:
        return "plus" in amount_rules.withdrawal or (None in marks and amount_rules.unmarked == "deposit")
    return printed_marks == {"dr"} and None in marks and amount_rules.unmarked == "withdrawal"


def _has_undated_rows(layout: LayoutSurvey) -> bool:
    """Return True if a line between two rows has an amount but no date."""
    return any(
        not layout.is_row_start(line)
        and not layout.is_sum_line(line)
        and any(
            amount_column.x0 <= line.words[-1].box[2] <= amount_column.x1 + NARROW_MARGIN
            for amount_column in layout.amount_columns
        )
        for lines, row_positions in layout.row_positions_by_page.values()
        for line in lines[row_positions[0] : row_positions[-1]]
    )


class ConsolidatedIssue(LazyStrictRecord):
    """An issue of the rejected template, with the reviewers who reported it."""

    issue_id: str
    severity: TemplateIssueSeverity
    category: TemplateIssueCategory
    message: str
    suggested_fix: str = ""
    reported_by: tuple[str, ...] = ()


class BuilderRetryInput(LazyStrictRecord):
    """The builder's input after a rejected template: specification 004, "Retry Input"."""

    retry_attempt: int = Field(ge=2)
    prior_template: str
    """The rejected template, as TOML."""
    reviewer_feedback: Mapping[str, Any] = {}
    consolidated_issues: tuple[ConsolidatedIssue, ...] = ()
    convergence_status: str = ""
    max_attempts_remaining: int = Field(0, ge=0)
    earlier_attempts: tuple[TriedTemplate, ...] = Field((), exclude_if=not_)
    """The templates rejected before the prior one, first to last."""

    def weigh_issues_by_category(self) -> dict[TemplateIssueCategory, float]:
        """Weigh each category of issue by its most severe issue, 0.1 (low) to 1.

        Counts the consolidated issues, and all issues of reviewers that rejected the template. Categories without an
        issue are missing.
        """
        reported_issues = [(issue.category, issue.severity) for issue in self.consolidated_issues]
        reported_issues += [
            (issue["category"], issue["severity"])
            for feedback in self.reviewer_feedback.values()
            if not feedback.get("pass", False)
            for issue in feedback.get("issues", ())
        ]
        return {
            category: max(_WEIGHT_BY_SEVERITY[severity] for severity in severities)
            for category, severities in group_pairs(reported_issues).items()
        }

    def list_tried_templates(self) -> tuple[TriedTemplate, ...]:
        """List all rejected templates with their relevant issues, the newest last.

        Complaints of high weight count, or all without any. That nothing proves the directions refutes no reading:
        beside other complaints it is left out.
        """
        weights = self.weigh_issues_by_category()
        grave_categories = tuple(category for category, weight in weights.items() if weight == max(weights.values()))
        refuted = tuple(category for category in grave_categories if category != "sign_logic") or grave_categories
        return (*self.earlier_attempts, TriedTemplate(template=self.prior_template, refuted=refuted or ("other",)))


#: Score of a met sum, and penalty for a line that was not read.
_SUM_WEIGHT, _LEFTOVER_PENALTY = 1.0, 0.03
#: Penalty if all rows are found and not read; less than for a sum that is not met.
_LOST_ROWS_PENALTY = 0.9
_LOST_ROW_REASONS: tuple[LeftoverReason, ...] = (
    "no heading says which way the money went",
    "it has a date and no amount",
    "it has an amount and no date",
)
#: Weight of an issue in the category that it is about.
_WEIGHT_BY_SEVERITY: Mapping[TemplateIssueSeverity, float] = {"low": 0.1, "medium": 0.5, "high": 1.0, "critical": 1.0}
#: Score if all balances printed in the rows follow from the amounts.
_RUNNING_BALANCE_WEIGHT = 3.0


def build_draft_template(bundle: DocumentBundle) -> AppliedTemplate:
    """Build the template that reads the statement best, even if sums do not add up.

    Its id is derived from the bank's name. DocumentError STATEMENT-NO-TABLE if the pages have no columns of dates and
    amounts.
    """
    layout, drafts = _build_scored_drafts(bundle, None)
    return _finish_draft(max(drafts, key=attrgetter("score")).applied, layout)


def build_next_draft(bundle: DocumentBundle, retry: BuilderRetryInput) -> AppliedTemplate | None:
    """Build the best template that the issues of rejected templates do not refute.

    None if all hypotheses were tried or are refuted. Errors as ``build_draft_template``; UsageError if a rejected
    template is invalid.
    """
    layout, drafts = _build_scored_drafts(bundle, retry)
    next_draft = choose_untried_draft(
        drafts, retry.list_tried_templates(), lambda applied_template: _score_reading(applied_template, layout)
    )
    return next_draft and _finish_draft(next_draft, layout)


def _build_scored_drafts(
    bundle: DocumentBundle, retry: BuilderRetryInput | None
) -> tuple[LayoutSurvey, list[ScoredDraft]]:
    lines_by_page = group_pages_into_lines(bundle.pages)
    layout = survey_layout(lines_by_page)
    if layout is None:
        raise DocumentError(
            "no aligned dates and amounts were found",
            code="STATEMENT-NO-TABLE",
            remedy="Choose a bank statement that lists transactions in rows with a date and an amount.",
        )
    assembler = _TemplateAssembler(layout, bundle.sha256, retry)

    def build_and_score(hypothesis: TemplateHypothesis) -> ScoredDraft:
        applied_template = AppliedTemplate.apply_to_lines(assembler.build_template(hypothesis), lines_by_page)
        prior = hypothesis.initial_score
        return ScoredDraft(applied_template, _score_reading(applied_template, layout) + prior, prior)

    hypotheses = generate_hypotheses(layout, retry.weigh_issues_by_category() if retry else {})
    return layout, [build_and_score(hypothesis) for hypothesis in hypotheses]


def _finish_draft(applied_template: AppliedTemplate, layout: LayoutSurvey) -> AppliedTemplate:
    """Return the reading with its directions' proofs, and with sums of any label.

    A person's decision is kept.
    """
    template = applied_template.template
    if "person" in template.amounts.sign_proof:
        return applied_template
    sign_proof = DirectionEvidence(applied_template, layout.kind_evidence).list_proofs()
    amount_rules = template.amounts.model_copy(update={"sign_proof": sign_proof})
    template = template.model_copy(update={"amounts": amount_rules})
    labels = derive_sum_labels_by_value(layout, applied_template.statement, template, is_proven=bool(sign_proof))
    by_value = applied_template.apply_other_template(template.model_copy(update={"reconciliation": labels}))
    names = {check.name for check in by_value.sum_checks}
    is_whole = "closing_balance" in names or {"deposits", "withdrawals"} <= names
    if not (is_whole and by_value.has_all_sums_met and count_met_sums(by_value) > count_met_sums(applied_template)):
        return replace(applied_template, template=template)
    # Totals whose labels were found by the rows' directions do not prove them.
    proofs = DirectionEvidence(by_value, layout.kind_evidence).list_proofs()
    sign_proof = sign_proof or tuple(proof for proof in proofs if proof != "totals")
    amount_rules = amount_rules.model_copy(update={"sign_proof": sign_proof})
    return replace(by_value, template=by_value.template.model_copy(update={"amounts": amount_rules}))


def _score_reading(applied_template: AppliedTemplate, layout: LayoutSurvey) -> float:
    """Score met sums, read lines, and directions' agreement with words and headings."""
    evidence = DirectionEvidence(applied_template, layout.kind_evidence)
    statement, reconciliation = applied_template.statement, applied_template.reconciliation
    running_checks = [check for check in reconciliation.checks if check.name == "running_balance"]
    compared_count = max(sum(row.balance is not None for row in statement.transactions), 1)
    broken_count = sum(not check.is_met for check in running_checks)
    row_count = len(statement.transactions)
    # Balances among the rows that no other balance confirms may be amounts.
    balance_count = sum(printed_sum.kind == "carried" and printed_sum.after > 0 for printed_sum in statement.sums)
    balance_count -= sum(check.name == "carried_balance" and check.is_met for check in reconciliation.checks)
    lost_count = len(applied_template.select_leftovers(*_LOST_ROW_REASONS)) + balance_count
    read_share = row_count / max(row_count + lost_count, 1)
    score = _LOST_ROWS_PENALTY * (read_share - 1)
    if running_checks:
        score += _RUNNING_BALANCE_WEIGHT * (1 - 2 * broken_count / compared_count) * read_share
    score += sum(
        _SUM_WEIGHT if check.is_met else -_SUM_WEIGHT
        for check in reconciliation.checks
        if check.name not in ("running_balance", "repeated_rows")
    )
    labels = applied_template.template.reconciliation
    if derive_sum_labels_by_value(layout, statement, applied_template.template, is_proven=False) != labels:
        score += _SUM_WEIGHT
    open_count = sum(row.is_year_open for row in statement.transactions)
    score -= _LEFTOVER_PENALTY * (len(statement.left_over) + len(statement.outside) + open_count)
    return score + (_WORDING_WEIGHT * evidence.word_score + _HEADING_WEIGHT * evidence.heading_score)


class _TemplateAssembler:
    def __init__(self, layout: LayoutSurvey, statement_sha256: str, retry: BuilderRetryInput | None) -> None:
        self._layout = layout
        self._prior_template = parse_template_toml(retry.prior_template, "prior_template") if retry else None
        bank, kind = find_bank_name(layout), layout.kind_evidence.kind
        self._identity = StatementIdentity(
            bank=bank or "Unknown bank",
            statement=kind.name if kind else "",
            signs=(bank,) if bank else (),
            built_from=statement_sha256,
        )
        self._template_id = (
            self._prior_template.template_id
            if self._prior_template
            else derive_template_id(bank, self._identity.statement, statement_sha256)
        )
        self._sum_labels = derive_sum_labels(layout)
        self._boxes_by_width = {
            is_wide: find_table_box_by_page(layout, has_wide_regions=is_wide) for is_wide in (False, True)
        }
        self._row_rules = RowRules(
            furniture=(
                *load_bank_vocabulary().furniture,
                *find_repeated_line_patterns(layout),
                *find_balance_line_patterns(layout),
            ),
            section=find_direction_headings(layout),
            ends=find_table_end_patterns(layout),
        )

    def build_template(self, hypothesis: TemplateHypothesis) -> StatementTemplate:
        """Build the template that reads the statement as the hypothesis assumes."""
        columns = build_columns(self._layout, hypothesis.column_names)
        return StatementTemplate(
            template_id=self._template_id,
            version=self._prior_template.version + 1 if self._prior_template else 1,
            identity=self._identity,
            regions=build_regions(self._boxes_by_width[hypothesis.has_wide_regions], columns, self._layout.panels),
            columns=columns,
            dates=hypothesis.date_rules,
            amounts=hypothesis.amount_rules,
            rows=self._row_rules.model_copy(
                update={
                    "gap": hypothesis.continuation_gap,
                    "date_once": hypothesis.date_once,
                    "order": hypothesis.row_order,
                    "accounts": hypothesis.account_headings,
                }
            ),
            reconciliation=self._sum_labels,
        )


#: Longer proposals of a model are cut; no template is as long.
_MAX_PROPOSAL_LENGTH = 100_000


class ProposalResult(NamedTuple):
    """The template to use, the model usage, and the model that proposed the template."""

    applied_template: AppliedTemplate
    usage: Usage
    proposed_by: str = ""
    """The model whose proposal is used; empty if the program's own template is used."""


async def build_best_template(
    model: Model,
    bundle: DocumentBundle,
    applied_template: AppliedTemplate,
    *,
    page_images: Sequence[PageImage] = (),
    retry: BuilderRetryInput | None = None,
    timeout_seconds: float | None = None,
) -> ProposalResult:
    """Use a model's proposed template if it is as good as the one built by rules.

    If the model does not answer, or its proposal is invalid or reads the statement worse, the template built by rules
    is used; also if it reads the statement as a rejected template does. ``timeout_seconds``: for the model's answer.
    StoreError if the answer could not be stored.
    """
    if model.name == EmbeddedModel.name:
        return ProposalResult(applied_template, Usage())
    context = TemplateQuestionContext(bundle.sha256, applied_template, tuple(page_images))
    retry_json = None if retry is None else retry.model_dump(mode="json")
    answer = await model.ask(BuilderQuestion(context, retry=retry_json, time_limit_seconds=timeout_seconds))
    proposal_toml = answer.value.template if answer.value else None
    proposed_template = (
        None if proposal_toml is None else parse_proposed_template(proposal_toml, applied_template.template)
    )
    if proposed_template is None:
        return ProposalResult(applied_template, answer.usage)
    applied_proposal = await run_in_daemon_thread(lambda: applied_template.apply_other_template(proposed_template))
    tried_templates = retry.list_tried_templates() if retry else ()
    if not is_at_least_as_good(applied_proposal, applied_template) or is_tried(applied_proposal, tried_templates):
        return ProposalResult(applied_template, answer.usage)
    return ProposalResult(applied_proposal, answer.usage, model.name)


def parse_proposed_template(proposal_toml: str, measured_template: StatementTemplate) -> StatementTemplate | None:
    """Parse the template that a model proposed; None if it is not valid.

    Template id, version and schema version are taken from ``measured_template``; the status is draft. Patterns that
    ``measured_template`` does not contain are matched as plain words, because a model's regular expression could take
    too long.
    """
    try:
        parsed_template = parse_template_toml(proposal_toml[:_MAX_PROPOSAL_LENGTH], "proposal")
        known_patterns: list[str] = []

        def escape_if_unknown(pattern: str) -> str:
            return pattern if pattern in known_patterns else build_pattern_with_any_numbers(pattern)

        _replace_patterns(measured_template.model_dump(mode="json"), known_patterns.append)
        sanitised_fields = _replace_patterns(parsed_template.model_dump(mode="json", by_alias=True), escape_if_unknown)
        fixed_fields = {
            "template_id": measured_template.template_id,
            "identity": {**sanitised_fields["identity"], "built_from": measured_template.identity.built_from},
            "version": measured_template.version,
            "status": TemplateStatus.DRAFT,
        }
        return StatementTemplate.model_validate(
            {**sanitised_fields, **fixed_fields, "schema_version": measured_template.schema_version}
        )
    except (UsageError, ValueError, RecursionError):
        return None


def is_at_least_as_good(proposed: AppliedTemplate, reference: AppliedTemplate) -> bool:
    """Return True if ``proposed`` reads as much as ``reference``, as correctly.

    Its issues must not be worse than the reference's (compared by number, critical first), and it must read no fewer
    transactions and meet no fewer sums.
    """
    return (
        _count_findings_by_severity(proposed) <= _count_findings_by_severity(reference)
        and len(proposed.statement.transactions) >= len(reference.statement.transactions)
        and count_met_sums(proposed) >= count_met_sums(reference)
    )


def _count_findings_by_severity(applied_template: AppliedTemplate) -> tuple[int, ...]:
    ranks = [
        SeverityRank[finding.severity]
        for checks in CHECKS_BY_REVIEWER.values()
        for check in checks
        for finding in check(applied_template)
    ]
    return tuple(ranks.count(rank) for rank in sorted(SeverityRank, reverse=True))


#: Fields of a template whose values are patterns.
_PATTERN_FIELDS = frozenset(("period", "furniture", "accounts", "ends", "opening", "closing", "heading", "label"))


def _replace_patterns(value: Any, get_replacement: Callable[[str], str | None], field: str = "") -> Any:
    """Return a template's values, from JSON, with other patterns."""
    if isinstance(value, dict):
        return {name: _replace_patterns(child, get_replacement, name) for name, child in value.items()}
    if isinstance(value, list):
        return [_replace_patterns(child, get_replacement, field) for child in value]
    return get_replacement(value) if isinstance(value, str) and field in _PATTERN_FIELDS else value
