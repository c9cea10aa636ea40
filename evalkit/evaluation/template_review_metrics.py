"""Metrics of the reviews of bank-statement templates (specification 004)."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import PurePath

from evalkit.evaluation.intervals import Estimate, estimate_proportion
from evalkit.statements.review_cycles import SCHEMA_VERSION, ReviewCycle
from evalkit.statements.reviewer_report import TemplateIssueCategory
from evalkit.store import TEMPLATE_REVIEWS_FOLDER, OutputFolder, parse_stored_record


@dataclass(frozen=True)
class TemplateReviewMetrics:
    """Metrics of template reviews; each review has one or more attempts.

    A review ends with approval or with escalation to a person.
    """

    review_count: int
    attempt_count: int
    first_pass_approval_rate: Estimate
    """Share of reviews that were approved on the first attempt."""
    arbitration_rate: Estimate
    """Share of attempts on which the two reviewers disagreed, among attempts that both reported on."""
    convergence_rate: Estimate
    """Share of reviews that ended with approval, on any attempt."""
    disagreement_categories: dict[TemplateIssueCategory, int]
    """Number of issues by category that only one reviewer reported in a disputed attempt; most frequent first."""
    escalation_reasons: dict[str, int]
    """Number of reviews by the reason for escalation to a person; most frequent first."""
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    """Total cost of the reviews; None if a price is unknown."""


def read_template_review_cycles(output_folder: OutputFolder) -> list[ReviewCycle]:
    """Read all stored review cycles, sorted by template and number.

    StoreError names a file that cannot be read.
    """
    numbered_names = [
        (template_id, int(number[1]), name)
        for template_id in output_folder.list_subfolder_names(TEMPLATE_REVIEWS_FOLDER)
        for name in output_folder.list_json_files(f"{TEMPLATE_REVIEWS_FOLDER}/{template_id}")
        if (number := re.fullmatch(r"cycle_(\d+)", PurePath(name).stem))
    ]
    return [
        parse_stored_record(
            ReviewCycle,
            output_folder.read_json(name, max_schema_version=SCHEMA_VERSION),
            name,
            "Review the template again.",
        )
        for _, _, name in sorted(numbered_names)
    ]


def measure_template_reviews(cycles: Iterable[ReviewCycle]) -> TemplateReviewMetrics:
    """Compute the metrics of template reviews.

    ``cycles`` must be in the order of ``read_template_review_cycles``.
    """
    all_cycles = list(cycles)
    reviews = [list(group) for _, group in groupby(all_cycles, key=lambda cycle: cycle.review_cycle_id)]
    final_cycles = [review[-1] for review in reviews]
    approved_cycles = [cycle for cycle in final_cycles if cycle.outcome == "approved"]
    judged_cycles = [cycle for cycle in all_cycles if cycle.consensus is not None]
    disputed_cycles = [cycle for cycle in judged_cycles if cycle.consensus == "arbitration"]
    costs = [cycle.cost for cycle in final_cycles if cycle.cost]
    prices = [cost.estimated_cost_usd for cost in costs]
    known_prices = [price for price in prices if price is not None]
    return TemplateReviewMetrics(
        review_count=len(reviews),
        attempt_count=len(all_cycles),
        first_pass_approval_rate=estimate_proportion(
            sum(cycle.attempt == 1 for cycle in approved_cycles), len(reviews)
        ),
        arbitration_rate=estimate_proportion(len(disputed_cycles), len(judged_cycles)),
        convergence_rate=estimate_proportion(len(approved_cycles), len(reviews)),
        disagreement_categories=dict(
            Counter(
                reported.issue.category
                for cycle in disputed_cycles
                for reported in cycle.issues
                if len(reported.reported_by) == 1
            ).most_common()
        ),
        escalation_reasons=dict(
            Counter(
                str(cycle.escalation_reason) for cycle in final_cycles if cycle.outcome == "escalated"
            ).most_common()
        ),
        input_tokens=sum(cost.total_tokens["input"] for cost in costs),
        output_tokens=sum(cost.total_tokens["output"] for cost in costs),
        cost_usd=sum(known_prices, Decimal(0)) if len(known_prices) == len(prices) else None,
    )
