"""Panel of a template case: issues, rows, unread lines, sums, settings."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from itertools import repeat
from typing import Any

import traitlets

from evalkit.core.grouping import group_by, split_into_runs
from evalkit.issue import PageBox
from evalkit.review import Draft, TemplateReviewCase, describe_issue, get_issue_answers
from evalkit.review.kinds.statement_template import convert_template_issue, list_undecided_questions
from evalkit.review.template_editing import (
    COLUMN_WORDS,
    TEMPLATE_CHOICES,
    describe_region,
    find_chosen_reading,
    get_edge_page_fraction,
    list_column_edge_names_and_labels,
)
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.reconciliation import SumCheckName
from evalkit.statements.review_cycles import ReportedIssue
from evalkit.statements.reviewer_report import ReviewerRole
from evalkit.statements.statement_parser import Transaction
from evalkit.statements.statement_template import StatementTemplate
from widgets.case_panel import (
    format_headline,
    format_issue_counts,
    list_colleague_messages,
    list_earlier_reviews,
)
from widgets.screen_widget import CasePanelWidget

#: The words on the screen for the automatic reviewers that report an issue.
REVIEWER_ROLE_WORDS: dict[ReviewerRole, str] = {
    "layout_geometry": "layout check",
    "semantic_financial": "finance check",
    "arbitrator": "arbitrator",
}
#: The words on the screen for sums to which the statement prints no label.
SUM_CHECK_WORDS: dict[SumCheckName, str] = {
    "closing_balance": "closing balance",
    "running_balance": "balances of the rows",
    "carried_balance": "balance carried forward",
    "deposits": "deposits",
    "withdrawals": "withdrawals",
    "section_total": "total of the section",
    "repeated_rows": "repeated rows",
}
_MAX_LISTED_LEFTOVERS = 200


class TemplatePanel(CasePanelWidget, scripts=("template_panel",), styles=("template_panel",)):
    """Panel that shows one case about a statement template."""

    place = traitlets.Unicode(help="A sentence about the place of the selected target on the page.")
    page = traitlets.Int(0, help="The page on screen; the rows of this page are listed.")
    sums = traitlets.Dict(
        help="The sums, see ``render_sum_checks``, and ``reason``: the expert's reason for approving sums that do not add up."
    )
    rows = traitlets.List(
        trait=traitlets.Dict(),
        help="The rows that are read from the page on screen, in order: ``{name, date, description, amount, balance, account}``.",
    )
    counted = traitlets.Unicode(help="A phrase with the number of rows on this page and in all.")
    has_box = traitlets.Bool(default_value=True, help="True if the template has a box on the page on screen.")
    left = traitlets.List(
        trait=traitlets.Dict(), help="The lines of all pages that belong to no row: ``{name, page, text, reason}``."
    )
    template = traitlets.Dict(help="The template's settings with their options, see ``build_template_trait``.")
    readings = traitlets.Dict(
        help="The chosen reading, 0 or 1, of each question in ``case.questions`` by name; absent if none was chosen."
    )
    wanted = traitlets.List(
        trait=traitlets.Unicode(), help="The issues that the expert must still look at before approving the template."
    )


def render_template_case(case: TemplateReviewCase) -> dict[str, Any]:
    """Build ``TemplatePanel.case``: everything that stays the same while open."""
    packet, escalation = case.packet, case.packet.template_case.escalation
    template_identity = case.agent_template.identity
    template_name = " · ".join(
        filter(None, [template_identity.bank, template_identity.statement, f"version {case.agent_template.version}"])
    )
    sentence_by_issue_id = {issue.issue_id: describe_issue(issue) for issue in packet.issues}
    hidden_issue_count = len(case.packet.template_case.issues) - len(case.issues_within_caps)
    return {
        "headline": format_headline(
            packet, [issue for issue in packet.open_issues if issue.issue_id == case.choose_first_target_id()]
        ),
        "subline": f"{template_name} · {format_issue_counts(packet)}",
        "told": list_colleague_messages(case),
        "recommendation": escalation.recommendation,
        "refusal": case.explain_permanent_validation_block() or "",
        "issues": [_render_reported_issue(record) for record in case.issues_within_caps],
        "more": f"{hidden_issue_count} more of the same kinds were found" if hidden_issue_count else "",
        "opinions": _render_template_opinions(case),
        "history": [
            f"Version {record.attempt}: {record.issues} issue{'s' * (record.issues != 1)}"
            + (f", score {record.score:+.2f}" if record.attempt > 1 else "")
            + (f"; it assumed: {assumed}" if assumed else "")
            for record, assumed in zip(escalation.convergence_history, escalation.tried or repeat(""), strict=False)
        ],
        "persistent": [
            {
                "issue_id": record.issue_id,
                "words": f"{sentence_by_issue_id.get(record.issue_id, record.issue_id)} (in versions {', '.join(map(str, record.reported_in_attempts))})",
                "fixes": list(record.suggested_fixes_tried),
            }
            for record in escalation.persistent_issues
        ],
        "reports": [
            f"The {REVIEWER_ROLE_WORDS[record.reviewer_role]}{f' ({record.reviewer_model})' if record.reviewer_model else ''} "
            f"{'accepts' if record.is_passed else 'rejects'} the template"
            for record in escalation.all_reviewer_reports[-2:]
        ],
        "arbitration": [record.recommendation for record in escalation.arbitration_reports if record.recommendation],
        "earlier": list_earlier_reviews(case),
    }


def render_reading_questions(
    case: TemplateReviewCase, render_cut_out: Callable[[PageBox], str]
) -> list[dict[str, Any]]:
    """Build ``case.questions``: both interpretations of each doubt, with totals.

    ``render_cut_out`` draws a row's line as a data address.
    """
    return [
        {
            "name": name,
            "issue_id": next(
                record.issue.issue_id
                for record in case.issues_within_caps
                if record.issue.category == _CATEGORY_BY_QUESTION[name]
            ),
            "question": _READING_QUESTIONS[name],
            "rows": [
                {
                    "name": f"row.{number}",
                    "page": row.page,
                    "text": row.description,
                    "picture": render_cut_out(_find_cell_box(case.agent_template, row, name)),
                    "cells": [_CELL_BY_QUESTION[name](version) for version in (row, other)],
                }
                for number, row, other in _choose_example_rows(*readings)
            ],
            "totals": [[label, *(describe(reading) for reading in readings)] for label, describe in _TOTALS[name]],
        }
        for name in list_undecided_questions(case.packet, case.agent_template)
        if (readings := case.apply_both_readings(name))
    ]


def list_chosen_readings(case: TemplateReviewCase, draft: Draft) -> dict[str, int]:
    """Build ``TemplatePanel.readings``: the chosen interpretation per question."""
    chosen = {
        name: find_chosen_reading(case.get_template(draft), name, opened_template=case.agent_template)
        for name in list_undecided_questions(case.packet, case.agent_template)
    }
    return {name: number for name, number in chosen.items() if number is not None}


def _choose_example_rows(first: AppliedTemplate, second: AppliedTemplate) -> list[tuple[int, Transaction, Transaction]]:
    """Choose rows that the readings tell differently: two of money in, two of out.

    Each has the row's number in the first reading, from 1.
    """
    other_by_place = {(row.page, row.boxes[0]): row for row in second.statement.transactions}
    pairs = [
        (number, row, other)
        for number, row in enumerate(first.statement.transactions, 1)
        if (other := other_by_place.get((row.page, row.boxes[0])))
        and (row.amount, row.date) != (other.amount, other.date)
    ]
    by_direction = group_by(pairs, lambda pair: pair[1].amount > 0)
    return sorted((pair for same in by_direction.values() for pair in same[:_MAX_EXAMPLES]), key=lambda pair: pair[0])


def _find_cell_box(template: StatementTemplate, row: Transaction, question_name: str) -> PageBox:
    """Find the box of the cells in the row's first line that the question is about."""
    x0, y0, x1, y1 = row.boxes[0]
    names = ("date",) if question_name == "dates" else ("debit", "credit", "amount")
    edges = [edge for column in template.columns if column.name in names for edge in column.x]
    return row.page, max(x0, min(edges)), y0, min(x1, max(edges)), y1


def _format_direction(row: Transaction) -> str:
    return f"{abs(row.amount):,.2f} {'in' if row.amount > 0 else 'out'}"


def _format_day(row: Transaction) -> str:
    day = date.fromisoformat(row.date)
    return f"{day.day} {day:%B %Y}"


def _sum_amounts(reading: AppliedTemplate, sign: int) -> str:
    amounts = (row.amount for row in reading.statement.transactions if row.amount * sign > 0)
    return f"{abs(sum(amounts, Decimal(0))):,.2f}"


def _format_last_balance(reading: AppliedTemplate) -> str:
    balances = [printed_sum.value for printed_sum in reading.statement.sums if printed_sum.kind == "closing"]
    return f"{abs(balances[-1]):,.2f} {'owed' if balances[-1] < 0 else 'held'}" if balances else "not printed"


def _format_outer_day(reading: AppliedTemplate, choose: Callable[..., Transaction]) -> str:
    rows = reading.statement.transactions
    return _format_day(choose(rows, key=lambda row: row.date)) if rows else "none"


_MAX_EXAMPLES = 2
_READING_QUESTIONS = {
    "signs": "Which way did the money go?",
    "dates": "Is the day first, or the month?",
}
_CATEGORY_BY_QUESTION = {"signs": "sign_logic", "dates": "date_format"}
_CELL_BY_QUESTION: dict[str, Callable[[Transaction], str]] = {"signs": _format_direction, "dates": _format_day}
_MET_SUMS = (
    "Sums that agree",
    lambda reading: f"{sum(check.is_met for check in reading.sum_checks)} of {len(reading.sum_checks)}",
)
#: The totals below the two readings of each question: label, and the words for a reading.
_TOTALS: dict[str, list[tuple[str, Callable[[AppliedTemplate], str]]]] = {
    "signs": [
        ("Money in", lambda reading: _sum_amounts(reading, 1)),
        ("Money out", lambda reading: _sum_amounts(reading, -1)),
        ("Balance at the end", _format_last_balance),
        _MET_SUMS,
    ],
    "dates": [
        ("First day", lambda reading: _format_outer_day(reading, min)),
        ("Last day", lambda reading: _format_outer_day(reading, max)),
        ("Rows read", lambda reading: str(len(reading.statement.transactions))),
        _MET_SUMS,
    ],
}


def render_sum_checks(applied_template: AppliedTemplate) -> dict[str, Any]:
    """Build ``TemplatePanel.sums``: printed and computed sums, differing ones first."""
    checks = applied_template.reconciliation.checks
    met_count = sum(check.is_met for check in checks)
    return {
        "is_met": applied_template.reconciliation.has_only_met_checks,
        "words": f"{met_count} of {len(checks)} agree" if checks else "the statement prints none",
        "checks": sorted(
            (
                {
                    "name": f"sum.{number}",
                    "label": check.label or SUM_CHECK_WORDS[check.name],
                    "account": check.account,
                    "expected": f"{check.expected:,.2f}",
                    "found": f"{check.found:,.2f}",
                    "difference": f"{check.difference:+,.2f}",
                    "is_met": check.is_met,
                    "message": check.message,
                }
                for number, check in enumerate(checks, 1)
            ),
            key=lambda rendered_check: rendered_check["is_met"],
        ),
    }


def render_transactions(applied_template: AppliedTemplate, page: int) -> list[dict[str, Any]]:
    """Build ``TemplatePanel.rows``: the transactions that are read from a page."""
    return [
        {
            "name": f"row.{number}",
            "date": transaction.date,
            "description": transaction.description,
            "amount": f"{transaction.amount:,.2f}",
            "balance": "" if transaction.balance is None else f"{transaction.balance:,.2f}",
            "account": transaction.account,
        }
        for number, transaction in enumerate(applied_template.statement.transactions, 1)
        if transaction.page == page
    ]


def render_unread_lines(applied_template: AppliedTemplate) -> list[dict[str, Any]]:
    """Build ``TemplatePanel.left``: the lines that belong to no transaction.

    Lines outside every box come first; the list is cut at ``_MAX_LISTED_LEFTOVERS``.
    """
    statement = applied_template.statement
    named_leftovers = [
        *((f"outside.{number}", line, "it is outside every box") for number, line in enumerate(statement.outside, 1)),
        *((f"left.{number}", line, line.reason) for number, line in enumerate(statement.left_over, 1)),
    ]
    return [
        {"name": name, "page": line.page, "text": line.text, "reason": reason}
        for name, line, reason in named_leftovers[:_MAX_LISTED_LEFTOVERS]
    ]


def describe_row_counts(applied_template: AppliedTemplate, page: int) -> str:
    """Format the number of rows that are read from a page and in all."""
    transactions = applied_template.statement.transactions
    count_on_page = sum(transaction.page == page for transaction in transactions)
    return f"{count_on_page} on this page, {len(transactions)} in all"


def build_template_trait(case: TemplateReviewCase, draft: Draft) -> dict[str, Any]:
    """Build ``TemplatePanel.template``: the settings with their options and values."""
    template = case.get_template(draft)
    agent_template = case.agent_template
    return {
        "columns": [
            {
                "title": column_or_option.title or f"column {column_index + 1}",
                "name": column_or_option.name,
                "is_yours": column_index >= len(agent_template.columns)
                or column_or_option.name != agent_template.columns[column_index].name,
            }
            for column_index, column_or_option in enumerate(template.columns)
        ],
        "names": [[name, words] for name, words in COLUMN_WORDS.items()],
        "choices": [
            {
                "what": choice_name,
                "question": choice.question,
                "value": choice.read_value(template),
                "options": [list(column_or_option) for column_or_option in choice.list_options(template).items()],
                "is_yours": choice.read_value(template) != choice.read_value(agent_template),
            }
            for choice_name, choice in TEMPLATE_CHOICES.items()
        ],
    }


def render_template_frames(case: TemplateReviewCase, draft: Draft, page: int, *, is_locked: bool) -> dict[str, Any]:
    """Build ``PagePane.frames``: regions, columns, edges, and a tick for each row.

    An edge has a name, the axis along which it can be moved, and its ends ``from`` and ``to``, which are names of other edges
    or positions on the page.
    """
    template, applied_template = case.get_template(draft), case.apply_template(draft)
    region_indexes = template.find_region_indices(page, case.packet.total_pages)
    if not region_indexes:
        return {}
    regions = [{"name": f"region.{index}", "label": describe_region(template, index)} for index in region_indexes]
    label_by_edge_name = dict(list_column_edge_names_and_labels(template, case.agent_template))
    top_edge_name = min((template.regions[index].box[1], f"region.{index}.top") for index in region_indexes)[1]
    bottom_edge_name = max((template.regions[index].box[3], f"region.{index}.bottom") for index in region_indexes)[1]
    columns = [
        {"label": COLUMN_WORDS[column.name].split(" (")[0]}
        | {
            side: _find_listed_edge_name(template, label_by_edge_name, f"column.{index}.{side}")
            for side in ("left", "right")
        }
        for index, column in enumerate(template.columns)
    ]
    edges = [
        {
            "name": f"region.{index}.{side}",
            "part": "region",
            "label": f"{side} edge of {describe_region(template, index)}",
            "axis": "x" if side in ("left", "right") else "y",
            "at": get_edge_page_fraction(template, f"region.{index}.{side}"),
            "from": {"name": f"region.{index}.{'top' if side in ('left', 'right') else 'left'}", "at": 0},
            "to": {"name": f"region.{index}.{'bottom' if side in ('left', 'right') else 'right'}", "at": 1},
        }
        for index in region_indexes
        for side in ("top", "bottom", "left", "right")
    ] + [
        {
            "name": edge_name,
            "part": "column",
            "label": edge_label,
            "axis": "x",
            "at": get_edge_page_fraction(template, edge_name),
            "from": {"name": top_edge_name, "at": 0},
            "to": {"name": bottom_edge_name, "at": 1},
        }
        for edge_name, edge_label in label_by_edge_name.items()
    ]
    statement = applied_template.statement
    ticks = [
        {"y0": transaction.boxes[0][1], "y1": transaction.boxes[0][3], "is_read": True}
        for transaction in statement.transactions
        if transaction.page == page
    ] + [
        {"y0": leftover.box[1], "y1": leftover.box[3], "is_read": False}
        for leftover in (*statement.left_over, *statement.outside)
        if leftover.page == page
    ]
    return {
        "page": page, "is_locked": is_locked, "regions": regions, "columns": columns, "edges": edges, "ticks": ticks,
    }  # fmt: skip


def describe_template_target_place(case: TemplateReviewCase, target_id: str, draft: Draft) -> str:
    """Describe where an issue, row, line or sum is highlighted, if it is."""
    place = case.locate_target(target_id, draft)
    if not place.boxes:
        return f"This is about page {place.page}; nothing is highlighted."
    return f"{'Outlined' if place.style == 'near' else 'Highlighted'} on page {place.page}."


def build_region_ribbon(case: TemplateReviewCase, draft: Draft) -> list[dict[str, Any]]:
    """Build ``PagePane.segments``: runs of pages that the same regions read."""
    total_pages, template = case.packet.total_pages, case.get_template(draft)

    def label_page(page: int) -> str:
        region_indexes = template.find_region_indices(page, total_pages)
        if not region_indexes:
            return "no box"
        return describe_region(template, region_indexes[0]).removeprefix("transactions on ").partition(",")[0]

    label_by_page = {page: label_page(page) for page in range(1, total_pages + 1)}
    page_runs = split_into_runs(label_by_page, lambda run, page: label_by_page[page] == label_by_page[run[0]])
    return [
        {
            "start": run[0],
            "end": run[-1],
            "type": label_by_page[run[0]],
            "flags": [],
            "note": "",
            "divider": "other boxes",
        }
        for run in page_runs
    ]


def _find_listed_edge_name(template: Any, label_by_edge_name: dict[str, str], edge_name: str) -> str:
    """Find the name under which an edge is listed; a shared edge has two names."""
    if edge_name in label_by_edge_name:
        return edge_name
    position = get_edge_page_fraction(template, edge_name)
    return min(
        label_by_edge_name, key=lambda candidate_edge: abs(get_edge_page_fraction(template, candidate_edge) - position)
    )


def _render_reported_issue(reported_issue: ReportedIssue) -> dict[str, Any]:
    issue, resolution = reported_issue.issue, reported_issue.resolution
    packet_issue = convert_template_issue(reported_issue)
    arbitrator_sentence = ""
    if resolution is not None:
        winner_words = (
            "nobody"
            if resolution.winning_reviewer == "neither"
            else f"the {REVIEWER_ROLE_WORDS[resolution.winning_reviewer]}"
        )
        arbitrator_sentence = (
            f"Arbitrator: sides with {winner_words}, {resolution.final_severity}, {resolution.confidence:.0%} sure"
        )
        arbitrator_sentence += f": {resolution.reasoning}" if resolution.reasoning else "."
    evidence = issue.evidence
    facts = (("expected", evidence.expected), ("actual", evidence.actual), ("part of the template", evidence.location))
    return {
        "issue_id": issue.issue_id,
        "severity": issue.severity,
        "by": " and ".join(REVIEWER_ROLE_WORDS[role] for role in reported_issue.reported_by),
        "where": " · ".join(
            filter(
                None,
                [issue.category.replace("_", " ").replace("bbox", "box"), f"page {issue.page}" if issue.page else ""],
            )
        ),
        "message": describe_issue(packet_issue),
        "answers": asdict(get_issue_answers(packet_issue)),
        "fix": issue.suggested_fix,
        "evidence": "; ".join(f"{label}: {text}" for label, text in facts if text),
        "arbitrator": arbitrator_sentence,
    }


def _render_template_opinions(case: TemplateReviewCase) -> list[dict[str, Any]]:
    return [
        {
            "name": opinion.label,
            "overall": "rejected"
            if opinion.outcome == "undeterminable"
            else ""
            if opinion.draft.template
            else "approved as it was",
            "can_take": opinion.outcome != "undeterminable" and not case.is_locked,
            "changes": list(case.describe_changes(opinion.draft)),
            "notes": opinion.notes,
        }
        for opinion in case.opinions
    ]
