"""Plan of a review: questions to an expert, duration, and expected errors found.

A case with doubts only about single parts asks only about these: a part is asked about if its risk, at the price of a
wrong answer, exceeds the price of the expert's minutes, or if an open MAJOR issue names it.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v2_consistency import get_stated_beginning_probabilities
from evalkit.core.grouping import group_pairs
from evalkit.core.records import StrictRecord
from evalkit.issue import RISK_BY_SEVERITY, Issue, IssueSeverity
from evalkit.review.plain_sentences import get_issue_answers
from evalkit.settings import PriceSettings

#: A part of a classification about which an expert is asked: that the boundary before a page, or its absence, is right; that
#: a segment (its number in the answer) has its type; that all pages are about one patient.
QuestionPart = Annotated[str, StringConstraints(pattern=r"^(?:boundary:[1-9]\d*|segment:[1-9]\d*|patients)$")]

#: Probability with which a case that could ask only about its doubts is shown whole, to see what the short form misses.
SHOWN_WHOLE_PROBABILITY = 0.1
#: Seconds for each page that must be seen, by kind of case, while fewer than ``_MIN_TIMED_CASES`` were timed.
_DEFAULT_SECONDS_PER_PAGE = {"classification": 20.0, "extraction": 60.0, "statement_template": 90.0}
_MIN_TIMED_CASES = 5
#: The precision of an issue code is shrunk to the risk of its severity, which counts as so many judged issues.
_PRIOR_JUDGEMENTS = 10

#: Risk of a boundary of which the answer states no doubt: 26 of 1,601 were wrong on drawn packets (2026-11-27).
_UNSTATED_BOUNDARY_RISK = 0.016
#: Intercept and slope by which the logit of the risk of a type follows from the stated one, by the model of the answer. The
#: built-in model is surer than it says, on drawn packets of sources that it had not seen; others are taken at their word
#: until experts have judged their types.
_SHIPPED_CALIBRATIONS = {"embedded": (0.0, 2.3)}
_NO_CALIBRATION = (0.0, 1.0)

_BOUNDARY_EFFECTS = ("begin_document", "join_document", "decide_boundary")
#: Effects of answers about a segment's type. Whoever answers another question, such as whether pages are missing or shares
#: are right, says nothing about the type, and needs more pages.
_TYPE_EFFECTS = ("choose_type", "remove_type", "strike_quote")


class AskedPart(StrictRecord):
    """A part of the answer that the expert is asked about."""

    part: QuestionPart
    """``boundary:PAGE``, ``segment:N`` (the number in the answer) or ``patients``."""
    risk: float
    """Estimated probability (0..1) that the part is wrong."""
    pages: tuple[int, ...]
    """The pages that must be seen to answer, ascending."""
    issue_ids: tuple[str, ...] = ()
    """The open issues about the part, worst first; empty if only the program's own certainty is low."""

    @property
    def question_ids(self) -> tuple[str, ...]:
        """The ids of the questions about the part, or its name if no issue is about it."""
        return self.issue_ids or (self.part,)


class ReviewPlan(StrictRecord):
    """Plan of one case, made when the case is written."""

    expected_errors: float
    """Expected number of errors that the review finds: the sum of the risks of what is asked."""
    expected_minutes: float
    """Expected active minutes of the expert."""
    asked: tuple[AskedPart, ...] = Field(default=(), exclude_if=lambda asked: not asked)
    """The parts in doubt, riskiest first, if the case could ask only about these; empty if it must be shown whole."""
    certainty_by_part: dict[str, float] = Field(default={}, exclude_if=lambda certainties: not certainties)
    """The program's certainty (0..1) of each segment that is not asked about, its pages belonging together."""
    shown_whole_probability: float = Field(default=1.0, exclude_if=lambda probability: probability == 1)
    """Probability with which the case was drawn to be shown whole; 1 if it must be."""
    is_shown_whole: bool = True
    """True if the expert is asked about the whole file."""


@dataclass(frozen=True)
class ReviewCosts:
    """Prices, durations and past outcomes that are used to plan reviews."""

    prices: PriceSettings = field(default_factory=PriceSettings)
    seconds_per_page: Mapping[str, float] = field(default_factory=lambda: _DEFAULT_SECONDS_PER_PAGE)
    """Active seconds for each page that must be seen, by kind of case."""
    confirmed_by_code: Mapping[str, int] = field(default_factory=dict)
    """Number of issues that experts confirmed, by code."""
    dismissed_by_code: Mapping[str, int] = field(default_factory=dict)
    calibration_by_source: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Intercept and slope of the logit of a type's risk, after the shipped calibration, by the model of the answer."""

    @classmethod
    def from_closings(cls, prices: PriceSettings, closings: Sequence[Mapping[str, Any]]) -> ReviewCosts:
        """Compute the costs from closed cases (``OutputIndex.list_closings``)."""
        timings = group_pairs(
            (row["kind"], row["seconds_active"] / row["pages_seen"])
            for row in closings
            if row["seconds_active"] and row["pages_seen"]
        )
        medians = {kind: median(seconds) for kind, seconds in timings.items() if len(seconds) >= _MIN_TIMED_CASES}
        confirmed, dismissed = (
            Counter(code for row in closings for code in row[column].split(",") if code)
            for column in ("confirmed", "dismissed")
        )
        from evalkit.classification.page_risks import fit_risk_calibration  # numpy would enlarge every expert's screen

        outcomes = group_pairs(
            (row["source"], tuple(map(float, outcome.split(":"))))
            for row in closings
            for outcome in row["type_outcomes"].split(",")
            if outcome and row["review_reason"] == "escalated"
        )
        calibrations: dict[str, tuple[float, float]] = {
            source: fit_risk_calibration(
                [_calibrate(risk, _SHIPPED_CALIBRATIONS.get(source, _NO_CALIBRATION)) for risk, _ in pairs],
                [bool(is_wrong) for _, is_wrong in pairs],
            )
            for source, pairs in outcomes.items()
        }
        return cls(prices, _DEFAULT_SECONDS_PER_PAGE | medians, confirmed, dismissed, calibrations)

    def estimate_minutes(self, kind: str, page_count: int) -> float:
        """Estimate an expert's active minutes for a case by its pages to be seen."""
        return page_count * self.seconds_per_page.get(kind, max(_DEFAULT_SECONDS_PER_PAGE.values())) / 60

    def estimate_issue_risk(self, issue: Issue) -> float:
        """Estimate the probability, 0..1, that an expert confirms an issue."""
        confirmed, dismissed = self.confirmed_by_code.get(issue.code, 0), self.dismissed_by_code.get(issue.code, 0)
        prior = RISK_BY_SEVERITY[issue.severity]
        return (confirmed + _PRIOR_JUDGEMENTS * prior) / (confirmed + dismissed + _PRIOR_JUDGEMENTS)

    def estimate_type_risk(self, confidence: float, source: str) -> float:
        """Estimate the probability, 0..1, that a type is wrong, by its certainty."""
        shipped_risk = _calibrate(1 - confidence, _SHIPPED_CALIBRATIONS.get(source, _NO_CALIBRATION))
        return _calibrate(shipped_risk, self.calibration_by_source.get(source, _NO_CALIBRATION))

    def is_worth_asking(self, kind: str, risk: float, page_count: int) -> bool:
        """Return True if a wrong answer is expected to cost more than the question."""
        question_usd = self.estimate_minutes(kind, page_count) * self.prices.minute_usd
        return risk * self.prices.wrong_accept_usd > question_usd


def find_asked_part(issue: Issue) -> str:
    """Find the part of the answer that an issue concerns; empty if none."""
    effect = get_issue_answers(issue).effect
    if effect in _BOUNDARY_EFFECTS and issue.page and issue.page > 1:
        return f"boundary:{issue.page}"
    if effect == "other_patient":
        return "patients" if issue.facts.get("count", 2) == 2 else ""  # two pages do not tell who a third patient is
    return f"segment:{issue.segment_index}" if issue.segment_index and effect in _TYPE_EFFECTS else ""


def plan_issue_review(kind: str, open_issues: Iterable[Issue], page_count: int, costs: ReviewCosts) -> ReviewPlan:
    """Plan a review of the whole case in which each open issue may be an error."""
    risks = [costs.estimate_issue_risk(issue) for issue in open_issues]
    return ReviewPlan(
        expected_errors=round(sum(risks), 4), expected_minutes=round(costs.estimate_minutes(kind, page_count), 4)
    )


def plan_classification_review(
    case_id: str,
    answer: ClassificationOutput,
    open_issues: Sequence[Issue],
    whole_pages: Collection[int],
    page_count: int,
    costs: ReviewCosts,
    source: str,
) -> ReviewPlan:
    """Plan the expert's review of a classification that the model ``source`` made.

    ``whole_pages`` are the pages that must be seen if the whole file is asked about. The case asks about its doubts only
    if there is no BLOCKER, every MAJOR issue names a part, and fewer pages must be seen so.
    """
    risks = compute_part_risks(answer, open_issues, page_count, costs, source)
    # A remark about a quote is no question about its document; one about a boundary is that boundary's question.
    issues_by_part = group_pairs(
        (part, issue)
        for issue in open_issues
        if (part := find_asked_part(issue)).startswith("boundary:") or issue.severity is not IssueSeverity.MINOR
    )
    asked = []
    for part, risk in risks.items():
        issues = issues_by_part.get(part, [])
        pages = _list_needed_pages(part, answer, issues, page_count)
        is_named = any(issue.severity is IssueSeverity.MAJOR for issue in issues)
        if is_named or costs.is_worth_asking("classification", risk, len(pages)):
            issue_ids = tuple(issue.issue_id for issue in issues)
            asked.append(AskedPart(part=part, risk=round(risk, 4), pages=pages, issue_ids=issue_ids))
    asked.sort(key=lambda asked_part: -asked_part.risk)
    asked_pages = {page for asked_part in asked for page in asked_part.pages}
    can_be_short = 0 < len(asked_pages) < len({*whole_pages}) and not any(
        issue.severity is IssueSeverity.BLOCKER
        or (issue.severity is IssueSeverity.MAJOR and find_asked_part(issue) not in risks)
        for issue in open_issues
    )
    if not can_be_short:
        minutes = costs.estimate_minutes("classification", len(whole_pages))
        return ReviewPlan(expected_errors=round(sum(risks.values()), 4), expected_minutes=round(minutes, 4))
    is_shown_whole = is_drawn_to_be_shown_whole(case_id)
    return ReviewPlan(
        expected_errors=round(sum(asked_part.risk for asked_part in asked), 4),
        expected_minutes=round(costs.estimate_minutes("classification", len(asked_pages)), 4),
        asked=tuple(asked),
        certainty_by_part=_compute_certainties(answer, risks, {asked_part.part for asked_part in asked}),
        shown_whole_probability=SHOWN_WHOLE_PROBABILITY,
        is_shown_whole=is_shown_whole,
    )


def is_drawn_to_be_shown_whole(case_id: str) -> bool:
    """Return True for one case in ten, chosen by hash, to be shown as a whole."""
    digest = hashlib.sha256(f"shown whole: {case_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < SHOWN_WHOLE_PROBABILITY * 2**64


def compute_part_risks(
    answer: ClassificationOutput, open_issues: Iterable[Issue], page_count: int, costs: ReviewCosts, source: str
) -> dict[str, float]:
    """Compute the risk, 0..1, of each part of an answer: types, boundaries, patients.

    It is the larger of the doubt that the answer states and the risk from the open BLOCKER and MAJOR issues about the part.
    The patients are a part only if such an issue names them.
    """
    beginnings = {segment.start_page for segment in answer.segments}
    risks = {f"boundary:{page}": _UNSTATED_BOUNDARY_RISK for page in range(2, page_count + 1)}
    for segment in answer.segments:
        confidences = (
            presence.confidence
            for presence in segment.segment_composition
            if presence.document_type is segment.dominant_type
        )
        risks[f"segment:{segment.segment_index}"] = costs.estimate_type_risk(next(confidences, 0.0), source)
    for page, probability in get_stated_beginning_probabilities(answer.self_evaluation).items():
        # the self-evaluation of another system may have any content
        if f"boundary:{page}" in risks and type(probability) in (int, float):
            risks[f"boundary:{page}"] = 1 - probability if page in beginnings else probability
    for issue in open_issues:
        part = find_asked_part(issue)
        if issue.severity is not IssueSeverity.MINOR and (part in risks or part == "patients"):
            risks[part] = max(risks.get(part, 0.0), costs.estimate_issue_risk(issue))
    return {part: min(max(risk, 0.0), 1.0) for part, risk in risks.items()}


def _calibrate(risk: float, intercept_and_slope: tuple[float, float]) -> float:
    """Correct a risk, 0..1: its logit times the slope, plus the intercept."""
    if not 0 < risk < 1:
        return min(max(risk, 0.0), 1.0)
    intercept, slope = intercept_and_slope
    odds = math.exp(intercept) * math.pow(risk / (1 - risk), slope)
    return odds / (1 + odds)


def _list_needed_pages(
    part: str, answer: ClassificationOutput, issues: Iterable[Issue], page_count: int
) -> tuple[int, ...]:
    kind, _, number = part.partition(":")
    pages: set[int | None] = {page for issue in issues for page in (issue.page, issue.found_page)}
    if kind == "boundary":
        pages |= {int(number) - 1, int(number)}
    elif kind == "segment":
        pages |= {segment.start_page for segment in answer.segments if segment.segment_index == int(number)}
    else:
        pages |= {page for issue in issues if type(page := issue.facts.get("other_page")) is int}
    return tuple(sorted(page for page in pages if page and 1 <= page <= page_count))


def _compute_certainties(
    answer: ClassificationOutput, risks: Mapping[str, float], asked_names: Collection[str]
) -> dict[str, float]:
    """Compute the certainty of each segment of which nothing but boundaries is asked."""
    certainties = {}
    for segment in answer.segments:
        part = f"segment:{segment.segment_index}"
        boundaries = [f"boundary:{page}" for page in range(segment.start_page, segment.end_page + 1)]
        doubts = [risks[name] for name in (part, *boundaries) if name in risks and name not in asked_names]
        if part not in asked_names:
            certainties[part] = round(math.prod(1 - risk for risk in doubts), 4)
    return certainties
