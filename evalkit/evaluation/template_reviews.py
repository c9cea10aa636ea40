"""How the review of bank-statement templates does: specification 004, "Review Quality Metrics", from the cycle files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import PurePath

from evalkit.evaluation.intervals import Estimate, exact
from evalkit.statements.review_cycles import SCHEMA_VERSION, Cycle
from evalkit.statements.reviewer_report import TemplateIssueCategory
from evalkit.store import TEMPLATE_REVIEWS_FOLDER, OutputFolder, validate_stored


@dataclass(frozen=True)
class TemplateReviews:
    """Reviews of templates: each is one or more attempts, and ends with approval or a person."""

    reviews: int
    attempts: int
    first_pass_approval: Estimate
    """The share of reviews that ended with the first attempt, approved."""
    arbitration: Estimate
    """The share of attempts, of those that both reviewers reported on, that the two disagreed on."""
    convergence: Estimate
    """The share of reviews that ended with approval, by whatever attempt."""
    disagreement_categories: dict[TemplateIssueCategory, int]
    """Issues that only one reviewer reported, where one passed the template and the other did not; most first."""
    escalations: dict[str, int]
    """Why a person had to decide; most first."""
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    """None where nobody knows the price of one of them."""


def read_cycles(files: OutputFolder) -> list[Cycle]:
    """All cycles of an output folder, by template and number. StoreError naming a file that cannot be read."""
    found = [
        (template_id, int(number[1]), name)
        for template_id in files.list_subfolders(TEMPLATE_REVIEWS_FOLDER)
        for name in files.list_json_files(f"{TEMPLATE_REVIEWS_FOLDER}/{template_id}")
        if (number := re.fullmatch(r"cycle_(\d+)", PurePath(name).stem))
    ]
    return [
        validate_stored(Cycle, files.read_json(name, schema_version=SCHEMA_VERSION), name, "Review the template again.")
        for _, _, name in sorted(found)
    ]


def template_reviews(cycles: Iterable[Cycle]) -> TemplateReviews:
    """The metrics of cycles that stand in the order in which they were made, as ``read_cycles`` gives them."""
    done = list(cycles)
    reviews = [list(group) for _, group in groupby(done, key=lambda cycle: cycle.review_cycle_id)]
    ended = [review[-1] for review in reviews]
    approved = [cycle for cycle in ended if cycle.outcome == "approved"]
    judged = [cycle for cycle in done if cycle.consensus is not None]
    disputed = [cycle for cycle in judged if cycle.consensus == "arbitration"]
    costs = [cycle.cost for cycle in ended if cycle.cost]
    prices = [cost.estimated_cost_usd for cost in costs]
    known = [price for price in prices if price is not None]
    return TemplateReviews(
        reviews=len(reviews),
        attempts=len(done),
        first_pass_approval=exact(sum(cycle.attempt == 1 for cycle in approved), len(reviews)),
        arbitration=exact(len(disputed), len(judged)),
        convergence=exact(len(approved), len(reviews)),
        disagreement_categories=dict(_disputed_categories(disputed).most_common()),
        escalations=dict(
            Counter(str(one.escalation_reason) for one in ended if one.outcome == "escalated").most_common()
        ),
        input_tokens=sum(cost.total_tokens["input"] for cost in costs),
        output_tokens=sum(cost.total_tokens["output"] for cost in costs),
        cost_usd=sum(known, Decimal(0)) if len(known) == len(prices) else None,
    )


def _disputed_categories(cycles: Sequence[Cycle]) -> Counter[TemplateIssueCategory]:
    return Counter(one.issue.category for cycle in cycles for one in cycle.issues if len(one.reported_by) == 1)
