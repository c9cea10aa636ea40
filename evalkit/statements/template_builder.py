"""The embedded builder: a statement becomes a template that reads it.

It tries a small number of meanings for what was surveyed (which column is what, what an amount without a sign is, how
dates are to be read), lets ``apply`` read the statement with each, and keeps the one whose sums meet best. A statement
whose printed sums do not add up keeps them so: the report says it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, product, takewhile
from operator import itemgetter
from typing import Any, Literal

from pydantic import Field

from evalkit.core.records import LazyStrictRecord
from evalkit.documents.bundle import Box, DocumentBundle
from evalkit.errors import DocumentError
from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start
from evalkit.statements.dates import DATE_FORMATS, parse_partial_date, resolve_date
from evalkit.statements.layout_survey import (
    AlignedColumn,
    LayoutSurvey,
    build_pattern_with_any_numbers,
    derive_period_patterns_and_formats,
    find_line_amounts,
    survey_layout,
)
from evalkit.statements.reconciliation import ReconciliationReport, reconcile_statement
from evalkit.statements.reviewer_report import TemplateIssueCategory, TemplateIssueSeverity
from evalkit.statements.statement_parser import ParsedStatement, find_statement_period, parse_statement_lines
from evalkit.statements.statement_template import (
    AmountRules,
    Column,
    ColumnName,
    DateRules,
    PageKind,
    PrintedSumLabels,
    Region,
    RowRules,
    SectionHeading,
    StatementIdentity,
    StatementTemplate,
    TotalLabel,
    parse_template_toml,
)
from evalkit.statements.text_lines import TextLine, group_words_into_lines


class ConsolidatedIssue(LazyStrictRecord):
    """An issue of either reviewer or of both."""

    issue_id: str
    severity: TemplateIssueSeverity
    category: TemplateIssueCategory
    message: str
    suggested_fix: str = ""
    reported_by: tuple[str, ...] = ()


class BuilderRetryInput(LazyStrictRecord):
    """What a builder is told when its template was rejected: specification 004, "Retry Input"."""

    retry_attempt: int = Field(ge=2)
    prior_template: str
    """As TOML."""
    reviewer_feedback: Mapping[str, Any] = {}
    consolidated_issues: tuple[ConsolidatedIssue, ...] = ()
    convergence_status: str = ""
    max_attempts_remaining: int = Field(0, ge=0)

    def weigh_issues_by_category(self) -> dict[TemplateIssueCategory, float]:
        """What is complained about, 0..1 by its worst issue; also beyond the consolidated issues, which are capped.

        A reviewer who passed the template does not ask for another one.
        """
        reported_issues = [
            (consolidated_issue.category, consolidated_issue.severity)
            for consolidated_issue in self.consolidated_issues
        ]
        for feedback in self.reviewer_feedback.values():
            if not feedback.get("pass", False):
                reported_issues += [(issue["category"], issue["severity"]) for issue in feedback.get("issues", ())]
        weight_by_category: dict[TemplateIssueCategory, float] = {}
        for category, severity in reported_issues:
            weight_by_category[category] = max(weight_by_category.get(category, 0.0), _WEIGHT_BY_SEVERITY[severity])
        return weight_by_category


@dataclass(frozen=True)
class TemplateBuildResult:
    """A template, and what it reads in the statement that it was built from."""

    template: StatementTemplate
    statement: ParsedStatement
    reconciliation: ReconciliationReport
    hypotheses_tried: int
    """How many meanings were tried."""


@dataclass(frozen=True)
class _TemplateHypothesis:
    """What the surveyed things are taken for."""

    column_names: tuple[ColumnName, ...]
    """One for each stack of amounts."""
    amount_rules: AmountRules
    date_formats: tuple[str, ...]
    date_once: bool
    continuation_gap: float
    row_order: Literal["oldest_first", "newest_first"]
    has_wide_regions: bool
    """The regions reach as far as no other line stands."""
    initial_score: float
    """How much speaks for it before any sum is made."""


#: A continuation's distance in heights of a word; the second is tried after a complaint, and where lines are wide apart.
_CONTINUATION_GAPS = (2.2, 3.4)
#: For and against a meaning. A sum that meets or not says more than a title, a title more than a habit.
_SUM_WEIGHT, _TITLE_WEIGHT, _LEFTOVER_PENALTY, _COMPLAINT_WEIGHT = 1.0, 0.4, 0.03, 0.9
#: How much an issue asks for another template.
_WEIGHT_BY_SEVERITY: Mapping[TemplateIssueSeverity, float] = {"low": 0.1, "medium": 0.5, "high": 1.0, "critical": 1.0}
_RUNNING_BALANCE_WEIGHT = 3.0
#: Further columns of amounts are no statement's.
_MAX_AMOUNT_COLUMNS = 4
#: Beside the outermost words of a column there is so much room for longer ones, in page widths.
_COLUMN_MARGIN = 0.03
_NARROW_MARGIN = 0.004
_WIDE_REGION_MARGIN = 0.03
_MAX_HEADING_WORDS = 8
#: In a column of check numbers so many of the words are numbers.
_MIN_CHECK_NUMBER_SHARE = 0.8
#: Pages are read from here to there where nothing says otherwise; lines below the foot repeat on every page.
_DEFAULT_REGION_TOP, _FOOTER_TOP, _DEFAULT_REGION_BOTTOM = 0.06, 0.9, 0.96
#: What each kind of complaint is about: the part of a template that is to be another.
_ASPECT_BY_CATEGORY: dict[TemplateIssueCategory, Callable[[StatementTemplate], Any]] = {
    "bbox_accuracy": lambda template: template.regions,
    "column_mapping": lambda template: [(column.name, column.x) for column in template.columns],
    "sign_logic": lambda template: (template.amounts, [column.name for column in template.columns]),
    "date_format": lambda template: template.dates.formats,
    "multiline_handling": lambda template: (template.rows.continuation, template.rows.gap),
}
#: What an amount of a column ``amount`` may mean: deposit marks, withdrawal marks, without a mark; and how usual it is.
_SIGN_CONVENTIONS: tuple[tuple[AmountRules, float], ...] = (
    (AmountRules(), 0.2),
    (AmountRules(unmarked="withdrawal"), 0.0),
    (
        AmountRules(
            deposit=("minus", "trailing_minus", "parentheses", "cr"), withdrawal=("plus", "dr"), unmarked="withdrawal"
        ),
        -0.2,
    ),
    (AmountRules(unmarked="section"), 0.1),
)


def build_draft_template(
    bundle: DocumentBundle, *, template_id: str | None = None, retry: BuilderRetryInput | None = None
) -> TemplateBuildResult:
    """The template that reads the statement best; a draft, also where its sums do not meet.

    ``template_id``: else made of the bank's name. DocumentError STATEMENT-NO-TABLE where no dates and amounts stand
    below one another; UsageError where ``retry`` brings a template that is none.
    """
    lines_by_page = tuple(group_words_into_lines(page) for page in bundle.pages)
    layout = survey_layout(lines_by_page)
    if layout is None:
        raise DocumentError(
            "no dates and amounts stand below one another",
            code="STATEMENT-NO-TABLE",
            remedy="Name a bank statement, with pages that can be read.",
        )
    writer = _TemplateAssembler(layout, template_id, retry)
    hypotheses = list(_generate_hypotheses(layout, retry))

    def build_and_score(hypothesis: _TemplateHypothesis) -> tuple[float, TemplateBuildResult]:
        template = writer.build_template(hypothesis)
        statement = parse_statement_lines(template, lines_by_page)
        reconciliation = reconcile_statement(template, statement)
        score = (
            _score_by_met_sums(statement, reconciliation)
            + hypothesis.initial_score
            + writer.score_addressed_issues(template)
        )
        return score, TemplateBuildResult(template, statement, reconciliation, len(hypotheses))

    _, best_result = max(map(build_and_score, hypotheses), key=itemgetter(0))
    return best_result


def _score_by_met_sums(statement: ParsedStatement, reconciliation: ReconciliationReport) -> float:
    """How much the sums speak for a reading."""
    running_checks = [check for check in reconciliation.checks if check.name == "running_balance"]
    compared_count = max(sum(row.balance is not None for row in statement.transactions), 1)
    broken_count = sum(not check.is_met for check in running_checks)
    score = _RUNNING_BALANCE_WEIGHT * (1 - 2 * broken_count / compared_count) if running_checks else 0.0
    score += sum(
        _SUM_WEIGHT if check.is_met else -_SUM_WEIGHT
        for check in reconciliation.checks
        if check.name not in ("running_balance", "repeated_rows")
    )
    return score - _LEFTOVER_PENALTY * (len(statement.left_over) + len(statement.outside))


# What is tried


def _generate_hypotheses(layout: LayoutSurvey, retry: BuilderRetryInput | None) -> Iterator[_TemplateHypothesis]:
    complaints = retry.weigh_issues_by_category() if retry else {}
    gaps = _CONTINUATION_GAPS if "multiline_handling" in complaints else _CONTINUATION_GAPS[:1]
    wide_region_options = (False, True) if "bbox_accuracy" in complaints else (False,)
    has_headings = bool(_find_direction_headings(layout))
    date_hypotheses = list(_generate_date_hypotheses(layout))
    date_once_options = (False, True) if _has_undated_rows(layout) else (False,)
    for column_names, title_prior in _generate_column_names(layout):
        for (date_formats, row_order, date_prior), (
            amount_rules,
            sign_prior,
        ), date_once, gap, has_wide_regions in product(
            date_hypotheses,
            _generate_amount_rules(layout, column_names, has_headings=has_headings),
            date_once_options,
            gaps,
            wide_region_options,
        ):
            initial_score = title_prior + date_prior + sign_prior
            yield _TemplateHypothesis(
                column_names, amount_rules, date_formats, date_once, gap, row_order, has_wide_regions, initial_score
            )


def _generate_column_names(layout: LayoutSurvey) -> Iterator[tuple[tuple[ColumnName, ...], float]]:
    """Names for the stacks of amounts, and how much their titles speak for them."""
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
        used_names = [name for name in column_names if name != "other"]
        if len(used_names) != len(set(used_names)) or not (
            {"amount"} & set(used_names) or {"debit", "credit"} <= set(used_names)
        ):
            continue
        if "amount" in used_names and {"debit", "credit"} & set(used_names):
            continue
        title_score = sum(
            0 if not names_in_title else _TITLE_WEIGHT if name in names_in_title else -_TITLE_WEIGHT
            for name, names_in_title in zip(column_names, title_names, strict=True)
        )
        yield (
            (*skipped_names, *column_names),
            title_score + (0.1 if tuple(used_names) in usual_combinations else 0) - 0.3 * column_names.count("other"),
        )


def _match_titles_to_column_names(layout: LayoutSurvey, amount_column: AlignedColumn) -> set[str]:
    """What the title above the stack says that it is."""
    title_names: set[str] = set()
    for line in layout.header_lines:
        for cell in line.cells:
            if amount_column.overlaps(cell.box[0], cell.box[2]):
                matching_names = (
                    name
                    for name, pattern in load_bank_vocabulary().columns.items()
                    if match_at_line_start(pattern, cell.text)
                )
                title_names.update(islice(matching_names, 1))
    return title_names & {"amount", "debit", "credit", "balance"}


def _generate_amount_rules(
    layout: LayoutSurvey, column_names: Sequence[ColumnName], *, has_headings: bool
) -> Iterator[tuple[AmountRules, float]]:
    number_format = {"decimal": layout.decimal_separator, "whole": layout.cents_optional}
    balance_options: tuple[Literal["held", "owed"], ...] = (
        ("held", "owed")
        if any(labelled_amount.kind == "opening" for _, labelled_amount in layout.labelled_amounts)
        or "balance" in column_names
        else ("held",)
    )
    for (amount_rules, prior), balance in product(
        _SIGN_CONVENTIONS if "amount" in column_names else _SIGN_CONVENTIONS[:1], balance_options
    ):
        if amount_rules.unmarked == "section" and not has_headings:
            continue
        yield (
            amount_rules.model_copy(update={**number_format, "balance": balance}),
            prior - (0.1 if balance == "owed" else 0),
        )


def _generate_date_hypotheses(
    layout: LayoutSurvey,
) -> Iterator[tuple[tuple[str, ...], Literal["oldest_first", "newest_first"], float]]:
    """Formats that read all dates, with the order in which they lie then.

    Days and months that could be taken for one another are told apart by the order of the rows and by the period.
    """
    date_texts = [placed_text.text for placed_text in layout.date_column.dates_or_amounts]
    labels, period_formats = derive_period_patterns_and_formats(layout.lines_by_page)
    match_counts = {
        date_format: sum(parse_partial_date(text, (date_format,), is_ocr_text=True) is not None for text in date_texts)
        for date_format in DATE_FORMATS
    }
    highest_count = max(match_counts.values())
    best_formats = [date_format for date_format in DATE_FORMATS if match_counts[date_format] == highest_count]
    period = find_statement_period(
        DateRules(formats=tuple(best_formats), period=labels, period_formats=period_formats), (), layout.lines_by_page
    )
    is_day_first_usual = layout.decimal_separator == ","
    judged_formats = []
    for date_format in best_formats:
        other_formats = tuple(
            alternative
            for alternative in DATE_FORMATS
            if alternative != date_format and match_counts[alternative] and highest_count < len(date_texts)
        )
        row_dates = [
            resolved_date
            for text in date_texts
            if (day := parse_partial_date(text, (date_format,), is_ocr_text=True))
            and (resolved_date := resolve_date(day, period))
        ]
        unresolved_count = float(highest_count - len(row_dates))
        descending_steps = sum(a > b for a, b in pairwise(row_dates))
        ascending_steps = sum(a < b for a, b in pairwise(row_dates))
        is_usual_order = (
            (date_format.index("%d") < date_format.find("%m")) == is_day_first_usual if "%m" in date_format else True
        )
        outside_period_count = sum(
            period is not None and not (period.start or day) <= day <= period.end for day in row_dates
        )
        disorder = unresolved_count + min(descending_steps, ascending_steps) + outside_period_count
        judged_formats.append(
            (
                (date_format, *other_formats),
                disorder - 0.5 * is_usual_order,
                descending_steps,
                ascending_steps,
            )
        )
    date_formats, _, descending_steps, ascending_steps = min(judged_formats, key=lambda judged: judged[1])
    is_descending = descending_steps > 2 * ascending_steps
    yield date_formats, "newest_first" if is_descending else "oldest_first", 0.0
    if descending_steps and ascending_steps:
        yield date_formats, "oldest_first" if is_descending else "newest_first", -0.2


def _has_undated_rows(layout: LayoutSurvey) -> bool:
    """Whether amounts stand in lines between rows that have no date of their own."""
    for lines in layout.lines_by_page:
        row_positions = layout.find_row_start_positions(lines)
        for line in lines[row_positions[0] : row_positions[-1]] if row_positions else ():
            right_edge = line.words[-1].box[2]
            ends_below_amounts = any(
                amount_column.x0 <= right_edge <= amount_column.x1 + _NARROW_MARGIN
                for amount_column in layout.amount_columns
            )
            if ends_below_amounts and not layout.is_row_start(line) and not layout.is_sum_line(line):
                return True
    return False


# What is written down


class _TemplateAssembler:
    """Writes templates for one statement."""

    def __init__(self, layout: LayoutSurvey, template_id: str | None, retry: BuilderRetryInput | None) -> None:
        self._layout = layout
        self._prior_template = parse_template_toml(retry.prior_template, "prior_template") if retry else None
        self._complaints = retry.weigh_issues_by_category() if retry else {}
        bank = _find_bank_name(layout)
        self._template_id = template_id or (
            self._prior_template.template_id if self._prior_template else f"{_slugify(bank)}_draft_v1"
        )
        self._identity = StatementIdentity(bank=bank, signs=(bank,))
        self._period_labels, self._period_formats = derive_period_patterns_and_formats(layout.lines_by_page)
        self._sum_labels = derive_sum_labels(layout)
        self._sections = _find_direction_headings(layout)
        self._account_headings = _find_account_heading_patterns(layout)
        self._boxes_by_width = {
            is_wide: _find_table_box_by_page(layout, has_wide_regions=is_wide) for is_wide in (False, True)
        }
        self._table_ends = _find_table_end_patterns(layout)
        self._furniture_patterns = (*load_bank_vocabulary().furniture, *_find_repeated_line_patterns(layout))

    def build_template(self, hypothesis: _TemplateHypothesis) -> StatementTemplate:
        """The template of a meaning."""
        layout = self._layout
        columns = _build_columns(layout, hypothesis.column_names)
        return StatementTemplate(
            template_id=self._template_id,
            version=self._prior_template.version + 1 if self._prior_template else 1,
            identity=self._identity,
            regions=_build_regions(self._boxes_by_width[hypothesis.has_wide_regions], columns),
            columns=columns,
            dates=DateRules(
                formats=hypothesis.date_formats, period=self._period_labels, period_formats=self._period_formats
            ),
            amounts=hypothesis.amount_rules,
            rows=RowRules(
                gap=hypothesis.continuation_gap,
                date_once=hypothesis.date_once,
                order=hypothesis.row_order,
                furniture=self._furniture_patterns,
                section=self._sections,
                accounts=self._account_headings,
                ends=self._table_ends,
            ),
            reconciliation=self._sum_labels,
        )

    def score_addressed_issues(self, template: StatementTemplate) -> float:
        """How much of what the reviewers complained about is another than before; never as much as a sum."""
        complained_aspects = [
            (_ASPECT_BY_CATEGORY[category], weight)
            for category, weight in self._complaints.items()
            if category in _ASPECT_BY_CATEGORY
        ]
        if self._prior_template is None or not complained_aspects:
            return 0.0
        changed_weight = sum(
            weight
            for get_aspect, weight in complained_aspects
            if get_aspect(template) != get_aspect(self._prior_template)
        )
        return _COMPLAINT_WEIGHT * changed_weight / len(complained_aspects)


def _build_columns(layout: LayoutSurvey, column_names: Sequence[ColumnName]) -> tuple[Column, ...]:
    """The columns from the left; what stands between dates and amounts is the description, and check numbers."""
    spans: list[tuple[ColumnName, float, float]] = [("date", layout.date_column.x0, layout.date_column.x1)]
    if layout.value_date_column:
        spans.append(("value_date", layout.value_date_column.x0, layout.value_date_column.x1))
    spans += [
        (name, amount_column.x0, amount_column.x1)
        for name, amount_column in zip(column_names, layout.amount_columns, strict=True)
    ]
    if check_number_column := _find_check_number_column(layout):
        spans.append(("check_number", check_number_column.x0, check_number_column.x1))
    spans.append(("description", *_find_description_span(layout, [span[1:] for span in spans])))
    spans.sort(key=lambda span: span[1])
    edges = [
        max(spans[0][1] - _COLUMN_MARGIN, 0.0),
        *(_compute_column_edge(a, b) for a, b in pairwise(spans)),
        min(spans[-1][2] + _COLUMN_MARGIN, 1.0),
    ]
    return tuple(
        Column(name=name, x=(round(x0, 4), round(x1, 4)), title=_read_column_title(layout, x0, x1))
        for (name, *_), (x0, x1) in zip(spans, pairwise(edges), strict=True)
    )


def _compute_column_edge(
    left_span: tuple[ColumnName, float, float], right_span: tuple[ColumnName, float, float]
) -> float:
    """Between two columns: amounts may be longer to the left, texts to the right."""
    left_limit = min(left_span[2], right_span[1] - _NARROW_MARGIN)
    return max(
        left_limit + _NARROW_MARGIN / 2,
        right_span[1]
        - (_COLUMN_MARGIN if right_span[0] in ("debit", "credit", "amount", "balance") else _NARROW_MARGIN),
    )


def _find_description_span(layout: LayoutSurvey, taken_spans: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """From the first to the last word that is neither a date nor an amount, right of the dates, in most rows."""
    row_spans: list[tuple[float, float]] = []
    first_amount_x = min(amount_column.x0 for amount_column in layout.amount_columns)
    for placed_text in layout.date_column.dates_or_amounts:
        words = [
            word
            for word in placed_text.line.words
            if placed_text.x1 < word.box[0]
            and not any(x0 - _NARROW_MARGIN <= word.center_x <= x1 + _NARROW_MARGIN for x0, x1 in taken_spans)
        ]
        if words:
            row_spans.append((words[0].box[0], max(word.box[2] for word in words)))
    if not row_spans:
        return layout.date_column.x1 + _NARROW_MARGIN, first_amount_x - _NARROW_MARGIN
    starts = sorted(x0 for x0, _ in row_spans)
    return starts[len(starts) // 20], max(
        x1 for _, x1 in row_spans if x1 < first_amount_x or x1 == max(x for _, x in row_spans)
    )


def _find_check_number_column(layout: LayoutSurvey) -> AlignedColumn | None:
    """The column whose title says check number, if numbers stand below it."""
    pattern = load_bank_vocabulary().columns["check_number"]
    for line in layout.header_lines:
        for cell in line.cells:
            if not match_at_line_start(pattern, cell.text):
                continue
            x0, _, x1, _ = cell.box
            words_below = [
                word
                for placed_text in layout.date_column.dates_or_amounts
                for word in placed_text.line.words
                if word.box[0] < x1 and x0 < word.box[2]
            ]
            number_words = [word for word in words_below if re.fullmatch(r"\W?\d{2,8}\W?", word.text)]
            if len(number_words) < _MIN_CHECK_NUMBER_SHARE * len(words_below):
                continue  # a title of one table, where others have texts
            if number_words and not any(amount_column.overlaps(x0, x1) for amount_column in layout.amount_columns):
                return AlignedColumn(
                    min([x0, *(word.box[0] for word in number_words)]),
                    max([x1, *(word.box[2] for word in number_words)]),
                    (),
                )
    return None


def _read_column_title(layout: LayoutSurvey, x0: float, x1: float) -> str:
    words = (word.text for line in layout.header_lines for word in line.words if x0 <= word.center_x < x1)
    return " ".join(dict.fromkeys(words))


def derive_sum_labels(layout: LayoutSurvey) -> PrintedSumLabels:
    """The labels of sums, as the statement prints them."""
    labels_by_kind: dict[str, dict[str, bool]] = {}
    table_line_ids = {id(line) for lines in layout.lines_by_page for line in _select_table_lines(layout, lines)}
    for line, labelled_amount in layout.labelled_amounts:
        is_inside_table = id(line) in table_line_ids
        if (
            labelled_amount.kind in ("deposits", "withdrawals")
            and is_inside_table
            and not match_at_line_start(load_bank_vocabulary().subtotal, labelled_amount.label)
        ):
            continue  # a row that begins so, not a sum
        labels_by_kind.setdefault(labelled_amount.kind, {})[
            _make_label_pattern(labelled_amount.kind, labelled_amount.label)
        ] = is_inside_table
    # Where both balances are called "Balance on …", the same label is of both.
    label_counts = Counter(
        _make_label_pattern(labelled_amount.kind, labelled_amount.label)
        for _, labelled_amount in layout.labelled_amounts
        if labelled_amount.kind == "opening"
    )
    for label, count in label_counts.items():
        if (
            count > 1
            and not labels_by_kind.get("closing")
            and match_at_line_start(load_bank_vocabulary().closing, label.replace("\\", ""))
        ):
            labels_by_kind.setdefault("closing", {})[label] = False
    totals = [TotalLabel(label=label, of="columns") for label in _find_column_total_labels(layout)]
    kinds: tuple[Literal["deposits", "withdrawals"], ...] = ("deposits", "withdrawals")
    for kind in kinds:
        labels = labels_by_kind.get(kind, {})
        grand_total_labels = [label for label in labels if match_at_line_start(load_bank_vocabulary().whole, label)]
        part_labels = [
            label
            for label, is_in_table in labels.items()
            if not is_in_table and not match_at_line_start(load_bank_vocabulary().subtotal, label)
        ]
        table_total_labels = [
            label for label, is_in_table in labels.items() if is_in_table and label not in grand_total_labels
        ]
        chosen_labels = [*grand_total_labels, *table_total_labels] or part_labels
        totals += [
            TotalLabel(label=label, of=kind, part=chosen_labels is part_labels and len(part_labels) > 1)
            for label in chosen_labels
        ]
    totals.sort(key=lambda total: -len(total.label))  # "Total deposits" is how "Total deposits and credits" begins
    return PrintedSumLabels(
        opening=tuple(labels_by_kind.get("opening", ())),
        closing=tuple(labels_by_kind.get("closing", ())),
        total=tuple(totals),
    )


def _find_column_total_labels(layout: LayoutSurvey) -> Iterator[str]:
    """The labels of lines with a total below each column."""
    for lines in layout.lines_by_page:
        for line in lines:
            if (
                layout.is_sum_line(line)
                or layout.is_row_start(line)
                or not match_at_line_start(load_bank_vocabulary().subtotal, line.text)
            ):
                continue
            line_amounts = list(find_line_amounts(line, layout.decimal_separator, cents_optional=layout.cents_optional))
            if len(line_amounts) > 1 and all(
                any(
                    amount_column.overlaps(placed_amount.x0, placed_amount.x1)
                    for amount_column in layout.amount_columns
                )
                for placed_amount in line_amounts
            ):
                yield build_pattern_with_any_numbers(
                    " ".join(word.text for word in line.words if word.box[2] <= line_amounts[0].x0)
                )


def _make_label_pattern(kind: str, text: str) -> str:
    """Of balances only what names them, of sums all words before a number: dates and counts change each month."""
    balance_pattern = {"opening": load_bank_vocabulary().opening, "closing": load_bank_vocabulary().closing}.get(kind)
    match = match_at_line_start(balance_pattern, text) if balance_pattern else None
    label_words = match.group() if match else re.split(r"\s*\(?\d", text, maxsplit=1)[0]
    return build_pattern_with_any_numbers(label_words or text)


def _select_table_lines(layout: LayoutSurvey, lines: Sequence[TextLine]) -> Sequence[TextLine]:
    """The lines from the page's first row to the one below its last; none where it has no rows."""
    row_positions = layout.find_row_start_positions(lines)
    return lines[row_positions[0] : row_positions[-1] + 2] if row_positions else ()


def _find_direction_headings(layout: LayoutSurvey) -> tuple[SectionHeading, ...]:
    """Headings above or between rows that say which way the money went."""
    section_by_heading: dict[str, SectionHeading] = {}
    heading_patterns: tuple[tuple[str, Literal["deposit", "withdrawal"]], ...] = (
        (load_bank_vocabulary().deposits_heading, "deposit"), (load_bank_vocabulary().withdrawals_heading, "withdrawal"),
    )  # fmt: skip
    for lines in layout.lines_by_page:
        row_positions = layout.find_row_start_positions(lines)
        for line in lines[max(row_positions[0] - 4, 0) : row_positions[-1]] if row_positions else ():
            if (
                layout.is_header_line(line)
                or layout.is_sum_line(line)
                or layout.is_row_start(line)
                or len(line.cells) > 1
            ):
                continue
            for pattern, direction in heading_patterns:
                if (
                    match_at_line_start(pattern, line.text)
                    and not line.text[-1:].isdigit()
                    and line.box[0] < layout.date_column.x1  # begins where the dates do: no description's second line
                ):
                    section_by_heading.setdefault(
                        line.text,
                        SectionHeading(heading=build_pattern_with_any_numbers(line.text), direction=direction),
                    )
                    break
    return tuple(section_by_heading.values())


def _find_account_heading_patterns(layout: LayoutSurvey) -> tuple[str, ...]:
    """Headings of accounts, where there are several with rows below each."""
    current_heading, row_counts = "", dict[str, int]()
    for lines in layout.lines_by_page:
        for line in lines:
            if layout.is_row_start(line):
                row_counts[current_heading] = row_counts.get(current_heading, 0) + 1
            elif not layout.is_header_line(line) and _is_account_heading(line):
                current_heading = re.sub(r"\W*\(?continued\)?$", "", line.text, flags=re.IGNORECASE)
    headings = [heading for heading in row_counts if heading]
    return (
        tuple(dict.fromkeys(build_pattern_with_any_numbers(heading) for heading in headings))
        if len(headings) > 1
        else ()
    )


def _is_account_heading(line: TextLine) -> bool:
    """Whether the line is a heading: short, with a number and no amount."""
    return (
        len(line.words) <= _MAX_HEADING_WORDS
        and bool(match_at_line_start(load_bank_vocabulary().account, line.text))
        and not re.search(r"\d[.,]\d\d\b", line.text)
    )


def _find_table_box_by_page(layout: LayoutSurvey, *, has_wide_regions: bool) -> dict[int, Box]:
    """For each page with rows from the first of them to the foot of the page, over the whole width.

    The next month's statement has more rows or fewer: what ends the table is its ``ends``, not the region.
    """
    box_by_page: dict[int, Box] = {}
    for page_number, lines in enumerate(layout.lines_by_page, 1):
        row_positions = layout.find_row_start_positions(lines)
        if not row_positions:
            continue
        first_row_position = row_positions[0]
        header_line = next((line for line in reversed(lines[:first_row_position]) if layout.is_header_line(line)), None)
        top = (
            (header_line.box[3] + lines[first_row_position].box[1]) / 2
            if header_line
            else max(lines[first_row_position].box[1] - lines[first_row_position].height / 2, 0.0)
        )
        footer_line = next(
            (
                line
                for line in lines[_find_last_table_line(layout, lines, row_positions[-1]) + 1 :]
                if line.box[1] > _FOOTER_TOP
            ),
            None,
        )
        bottom = (
            footer_line.box[1] - _NARROW_MARGIN
            if footer_line
            else max(_DEFAULT_REGION_BOTTOM, lines[row_positions[-1]].box[3] + _NARROW_MARGIN)
        )
        if has_wide_regions:
            top, bottom = max(top - _WIDE_REGION_MARGIN, 0.0), min(bottom + _WIDE_REGION_MARGIN, 1.0)
        box_by_page[page_number] = (0.0, top, 1.0, min(bottom, 1.0))
    return box_by_page


def _find_table_end_patterns(layout: LayoutSurvey) -> tuple[str, ...]:
    """The lines that follow a table: behind the last row of a page, before a further header, and on pages without rows."""
    end_patterns: dict[str, None] = {}
    has_begun = False
    for lines in layout.lines_by_page:
        row_positions = layout.find_row_start_positions(lines)
        if not row_positions and has_begun and lines:
            end_patterns[build_pattern_with_any_numbers(lines[0].text)] = None
        has_begun = has_begun or bool(row_positions)
        for row_position, next_position in pairwise((*row_positions, len(lines))):
            lines_between = lines[row_position + 1 : next_position]
            if next_position < len(lines) and not any(layout.is_header_line(line) for line in lines_between):
                continue
            lines_after_table = lines[
                _find_last_table_line(layout, lines[:next_position], row_position) + 1 : next_position
            ]
            foreign_line = next((line for line in lines_after_table if not layout.is_header_line(line)), None)
            if (
                foreign_line
                and foreign_line.box[1] <= _FOOTER_TOP
                and not _is_sum_heading_or_furniture(layout, foreign_line)
            ):
                end_patterns[build_pattern_with_any_numbers(foreign_line.text)] = None
    return tuple(pattern for pattern in end_patterns if re.search(r"[^\W\d_]{2}", pattern))


def _is_sum_heading_or_furniture(layout: LayoutSurvey, line: TextLine) -> bool:
    """Whether the line is a sum, a heading or furniture, which have rules of their own."""
    vocabulary = load_bank_vocabulary()
    patterns = (*vocabulary.furniture, vocabulary.deposits_heading, vocabulary.withdrawals_heading)
    return (
        layout.is_sum_line(line)
        or any(match_at_line_start(pattern, line.text) for pattern in patterns)
        or _is_account_heading(line)
    )


def _find_last_table_line(layout: LayoutSurvey, lines: Sequence[TextLine], last_row_position: int) -> int:
    """The place of the last line that belongs to the table: behind its last row lines go on, sums are printed."""
    first_amount_x = min(amount_column.x0 for amount_column in layout.amount_columns)
    for position in range(last_row_position + 1, len(lines)):
        line, previous_line = lines[position], lines[position - 1]
        is_known_line = layout.is_sum_line(line) or any(
            match_at_line_start(pattern, line.text) for pattern in load_bank_vocabulary().furniture
        )
        ends_in_amounts = line.words[-1].box[2] > first_amount_x and not layout.is_row_start(line)
        is_continuation = layout.date_column.x1 < line.box[0] and line.box[2] < first_amount_x
        has_amount = (
            ends_in_amounts
            and any(
                amount_column.x0 - _COLUMN_MARGIN <= line.words[-1].center_x <= amount_column.x1 + _NARROW_MARGIN
                for amount_column in layout.amount_columns
            )
            and line.words[-1].text[-1:].isdigit()
        )
        if line.deskewed_center_y - previous_line.deskewed_center_y > _CONTINUATION_GAPS[
            0
        ] * previous_line.height or not (is_known_line or is_continuation or has_amount):
            return position - 1
    return len(lines) - 1


def _find_repeated_line_patterns(layout: LayoutSurvey) -> Iterator[str]:
    """Lines beside the rows that several pages have, but for their numbers."""
    pattern_counts: Counter[str] = Counter()
    for lines in layout.lines_by_page:
        table_line_ids = {id(line) for line in _select_table_lines(layout, lines)}
        if table_line_ids:
            pattern_counts.update(
                {
                    build_pattern_with_any_numbers(line.text)
                    for line in lines
                    if not (id(line) in table_line_ids or layout.is_header_line(line) or layout.is_sum_line(line))
                }
            )
    return (pattern for pattern, count in pattern_counts.items() if count > 1 and re.search(r"[^\W\d_]{2}", pattern))


def _build_regions(box_by_page: Mapping[int, Box], columns: Sequence[Column]) -> tuple[Region, ...]:
    """Regions by kinds of pages, as wide as the columns."""
    x0, x1 = columns[0].x[0], columns[-1].x[1]
    last_page = max(box_by_page)

    def build_region(page_kind: PageKind, page_numbers: Sequence[int]) -> Iterator[Region]:
        boxes = [box_by_page[page_number] for page_number in page_numbers if page_number in box_by_page]
        if boxes:
            top, bottom = min(box[1] for box in boxes), max(box[3] for box in boxes)
            yield Region(pages=page_kind, box=(x0, round(top, 4), x1, round(bottom, 4)))

    if last_page == 1:  # where a longer statement goes on, nobody has seen yet
        return (
            *build_region("first", [1]),
            Region(pages="later", box=(x0, _DEFAULT_REGION_TOP, x1, round(box_by_page[1][3], 4))),
        )
    return (*build_region("first", [1]), *build_region("later", range(2, last_page + 1)))


def _find_bank_name(layout: LayoutSurvey) -> str:
    """The first line above the rows that names a bank, else the first line."""
    lines_above = takewhile(lambda line: not layout.is_row_start(line), layout.lines_by_page[0])
    texts = [cell.text for line in lines_above for cell in line.cells if re.search(r"[^\W\d_]{3}", cell.text)]
    pattern = re.compile(load_bank_vocabulary().bank, re.IGNORECASE)
    bank_names = (text for text in texts if pattern.match(text) and len(text.split()) <= _MAX_HEADING_WORDS)
    return next(bank_names, None) or next(iter(texts), "Unknown bank")


def _slugify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_") or "statement"
