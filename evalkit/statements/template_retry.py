"""Choice of the next template after a rejection: new and not refuted.

Candidates are the builder's hypotheses, and the best of them and the rejected template with one or two parts replaced.
A complaint refutes every candidate that reads the statement alike in what the complaint is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from pydantic import Field

from evalkit.core.records import LazyStrictRecord
from evalkit.statements.alternative_readings import exchange_columns, invert_directions
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.bank_vocabulary import load_bank_vocabulary
from evalkit.statements.reviewer_report import TemplateIssueCategory
from evalkit.statements.statement_template import ColumnName, StatementTemplate, parse_template_toml

#: Penalty for each part that differs from the template that it was derived from.
_CHANGE_PENALTY = 0.05
#: Number of the best candidates in which a second part is replaced.
_MAX_SECOND_CHANGES = 4
#: Extension of a region, up and down, in page heights.
_WIDE_REGION_MARGIN = 0.03
#: Distances of a description's next line, in heights of a word, that are tried.
_GAPS = (1.4, 2.2, 3.4)
_EXCHANGEABLE_COLUMNS: tuple[tuple[ColumnName, ColumnName], ...] = (
    ("date", "value_date"), ("amount", "balance"), ("debit", "credit"), ("debit", "balance"), ("credit", "balance"),
)  # fmt: skip


class TriedTemplate(LazyStrictRecord):
    """A rejected template, and the categories of the issues that refute it."""

    template: str
    """The template as TOML."""
    refuted: tuple[TemplateIssueCategory, ...] = Field(min_length=1)


class ScoredDraft(NamedTuple):
    """A candidate template with the statement's transactions that it reads."""

    applied: AppliedTemplate
    score: float
    prior: float
    """The part of the score that does not depend on the reading: how usual the template's assumptions are."""


Facts = frozenset[tuple[Any, ...]]
#: New values of a template's fields, by field.
Changes = Mapping[str, Any]


def _list_row_facts(applied: AppliedTemplate) -> Facts:
    columns = sorted(applied.template.columns, key=attrgetter("x"))
    has_overlap = any(right.x[0] < left.x[1] for left, right in pairwise(columns))
    rows = (
        (row.page, row.boxes, abs(row.amount), row.balance and abs(row.balance), row.description)
        for row in applied.statement.transactions
    )
    return frozenset((("overlap", has_overlap), *rows))


#: What complaints of a category are about, as facts of a reading.
_FACTS_BY_CATEGORY: Mapping[TemplateIssueCategory, Callable[[AppliedTemplate], Facts]] = {
    "bbox_accuracy": _list_row_facts,
    "column_mapping": _list_row_facts,
    "multiline_handling": lambda applied: frozenset(
        (row.page, row.boxes[0], row.description) for row in applied.statement.transactions
    ),
    "sign_logic": lambda applied: frozenset(
        (row.page, row.boxes[0], row.amount) for row in applied.statement.transactions
    ),
    "date_format": lambda applied: frozenset(
        (row.page, row.boxes[0], row.date) for row in applied.statement.transactions
    ),
    "reconciliation_strategy": lambda applied: frozenset(
        (check.name, check.account, check.expected, check.found) for check in applied.reconciliation.checks
    ),
}


def _vary_regions(base: StatementTemplate, _draft: StatementTemplate) -> Iterator[Changes]:
    for margin in (_WIDE_REGION_MARGIN, 1.0):
        boxes = [
            (x0, max(y0 - margin, 0.0), x1, min(y1 + margin, 1.0))
            for x0, y0, x1, y1 in (region.box for region in base.regions)
        ]
        yield {
            "regions": tuple(
                region.model_copy(update={"box": box}) for region, box in zip(base.regions, boxes, strict=True)
            )
        }


def _vary_columns(base: StatementTemplate, draft: StatementTemplate) -> Iterator[Changes]:
    yield {"columns": draft.columns, "regions": draft.regions}
    for name, other_name in _EXCHANGEABLE_COLUMNS:
        if base.find_column(name) and base.find_column(other_name):
            yield {"columns": exchange_columns(base, name, other_name).columns}


def _vary_amounts(base: StatementTemplate, _draft: StatementTemplate) -> Iterator[Changes]:
    opposite = invert_directions(base)
    yield {"amounts": opposite.amounts, "rows": opposite.rows, "columns": opposite.columns}


def _vary_rows(base: StatementTemplate, draft: StatementTemplate) -> Iterator[Changes]:
    values_by_field: dict[str, tuple[Any, ...]] = {
        **{field: (getattr(draft.rows, field), ()) for field in ("ends", "accounts", "section")},
        "furniture": (draft.rows.furniture, load_bank_vocabulary().furniture),
        "gap": _GAPS,
        "continuation": ("below", "none"),
        "date_once": (False, True),
        "order": ("oldest_first", "newest_first"),
    }
    for field, values in values_by_field.items():
        yield from ({"rows": base.rows.model_copy(update={field: value})} for value in values)


#: Further values of a template's fields, beside those of the builder's hypotheses.
_VARIANTS_BY_FIELD: Mapping[str, Callable[[StatementTemplate, StatementTemplate], Iterator[Changes]]] = {
    "regions": _vary_regions,
    "columns": _vary_columns,
    "amounts": _vary_amounts,
    "rows": _vary_rows,
}
_ALL_FIELDS = ("regions", "columns", "amounts", "dates", "rows", "reconciliation")
#: The fields that may be the cause of complaints of a category; all fields for other categories.
_FIELDS_BY_CATEGORY: Mapping[TemplateIssueCategory, tuple[str, ...]] = {
    "bbox_accuracy": ("regions", "rows", "columns"),
    "column_mapping": ("columns", "regions", "rows"),
    "sign_logic": ("amounts", "columns", "rows"),
    "date_format": ("dates", "rows", "columns"),
    "multiline_handling": ("rows", "columns", "regions"),
}


def _generate_changes(
    base: StatementTemplate, best_draft: StatementTemplate, drafts: Sequence[StatementTemplate], field: str
) -> Iterator[Changes]:
    yield from ({field: value} for value in dict.fromkeys(getattr(draft, field) for draft in drafts))
    if vary := _VARIANTS_BY_FIELD.get(field):
        yield from vary(base, best_draft)


#: Complaints of these categories are answered if more lines are understood.
_LAYOUT_CATEGORIES = ("bbox_accuracy", "column_mapping", "multiline_handling")


def choose_untried_draft(
    drafts: Sequence[ScoredDraft],
    tried_templates: Sequence[TriedTemplate],
    score_reading: Callable[[AppliedTemplate], float],
) -> AppliedTemplate | None:
    """Return the best candidate that no issue refutes; None if all were tried.

    ``drafts``: the builder's hypotheses, at least one. ``tried_templates``: the rejected templates, the last one last.
    ``score_reading``: the score of a reading, without the prior. A candidate never meets fewer sums than the last
    template. If no candidate avoids all that was complained about, one that avoids a part of it is taken.
    """
    best_draft = max(drafts, key=attrgetter("score"))
    tried = [
        _TriedReading(best_draft.applied.apply_other_template(_parse_as(attempt.template, best_draft)), attempt.refuted)
        for attempt in tried_templates
    ]
    last = tried[-1]
    fields = dict.fromkeys(
        field for category in last.refuted for field in _FIELDS_BY_CATEGORY.get(category, _ALL_FIELDS)
    )
    draft_templates = [draft.applied.template for draft in drafts]
    candidates = dict(zip(draft_templates, drafts, strict=True))

    def add_variants(base: ScoredDraft) -> None:
        for field in fields:
            for changes in _generate_changes(
                base.applied.template, best_draft.applied.template, draft_templates, field
            ):
                template = base.applied.template.model_copy(update=dict(changes))
                if template not in candidates:
                    applied, prior = base.applied.apply_other_template(template), base.prior - _CHANGE_PENALTY
                    candidates[template] = ScoredDraft(applied, prior + score_reading(applied), prior)

    def find_best_unrefuted(is_enough: Callable[[list[bool]], bool]) -> AppliedTemplate | None:
        ranked_candidates = sorted(candidates.values(), key=attrgetter("score"), reverse=True)
        return next((draft.applied for draft in ranked_candidates if _is_open(draft.applied, tried, is_enough)), None)

    # Parts of the last template that nobody complained about are likelier than what the program would choose.
    add_variants(ScoredDraft(last.applied, 0.0, best_draft.prior))
    unrefuted = find_best_unrefuted(all)
    if unrefuted and unrefuted.has_all_sums_met:
        return unrefuted
    add_variants(best_draft)
    for base in sorted(candidates.values(), key=attrgetter("score"), reverse=True)[:_MAX_SECOND_CHANGES]:
        add_variants(base)
    return find_best_unrefuted(all) or find_best_unrefuted(any)


class _TriedReading(NamedTuple):
    applied: AppliedTemplate
    refuted: tuple[TemplateIssueCategory, ...]

    def list_answers(self, applied: AppliedTemplate) -> list[bool]:
        """Return for each complaint if the candidate reads something else there.

        For complaints about the layout it is enough that fewer lines are not understood.
        """
        is_clearer = _count_unread_lines(applied) < _count_unread_lines(self.applied)
        return [
            not get_facts(applied) <= get_facts(self.applied) or (is_clearer and category in _LAYOUT_CATEGORIES)
            for category in self.refuted
            if (get_facts := _FACTS_BY_CATEGORY.get(category))
        ]


def _is_open(applied: AppliedTemplate, tried: Sequence[_TriedReading], is_enough: Callable[[list[bool]], bool]) -> bool:
    """Return True if the candidate is untried and fits enough of the complaints.

    Directions change only if they were complained about, or if more sums are met.
    """
    last = tried[-1]
    gained_sums = count_met_sums(applied) - count_met_sums(last.applied)
    return (
        gained_sums >= ("sign_logic" not in last.refuted and _has_opposite_directions(applied, last.applied))
        and not any(has_same_reading(applied, attempt.applied) for attempt in tried)
        and all(not answers or is_enough(answers) for attempt in tried for answers in [attempt.list_answers(applied)])
    )


def _parse_as(template_toml: str, draft: ScoredDraft) -> StatementTemplate:
    """Parse a tried template under the draft's identity, so only rules differ."""
    template, model = parse_template_toml(template_toml, "prior_template"), draft.applied.template
    same = {name: getattr(model, name) for name in ("template_id", "version", "status", "identity")}
    return template.model_copy(update=same)


def has_same_reading(applied: AppliedTemplate, other: AppliedTemplate) -> bool:
    """Return True if two templates read the same transactions from a statement.

    Its sums, and what is left over, count too.
    """
    same = {"template_id": other.template.template_id, "version": other.template.version}
    return applied.statement.model_copy(update=same) == other.statement and _list_row_facts(applied) == _list_row_facts(
        other
    )


def is_tried(applied: AppliedTemplate, tried_templates: Sequence[TriedTemplate]) -> bool:
    """Return True if a rejected template reads the same transactions."""
    return any(
        has_same_reading(applied, applied.apply_other_template(parse_template_toml(attempt.template, "prior_template")))
        for attempt in tried_templates
    )


def _has_opposite_directions(applied: AppliedTemplate, other: AppliedTemplate) -> bool:
    amounts = {(row.page, row.boxes[0]): row.amount for row in other.statement.transactions}
    return any(
        row.amount and amounts.get((row.page, row.boxes[0])) == -row.amount for row in applied.statement.transactions
    )


def _count_unread_lines(applied: AppliedTemplate) -> int:
    return len(applied.statement.left_over) + len(applied.statement.outside)


def count_met_sums(applied: AppliedTemplate) -> int:
    """Count the printed sums to which the transactions add up."""
    return sum(check.is_met for check in applied.reconciliation.checks)
