"""Extraction of one clinical report: extract, evaluate, retry until good enough.

This is the loop "MARC-v1" of specification 002, sections 3.3.3, 7.5 and 8; contract ruling 16. The best attempt is
returned, not the last. One deadline covers all calls. A result below the threshold, or with doubts, goes to a person.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

from evalkit.core.clocks import format_zulu_now
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.search import find_boxes_of_text_span
from evalkit.extraction.clinical.clinical_extractor import (
    ClinicalAttempt,
    ClinicalExtractor,
    RetryContext,
    find_mentioned_fields,
)
from evalkit.extraction.clinical.clinical_rules import get_base_field_name, get_found_values
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.evaluator import EvaluationScore, ExtractionEvaluator
from evalkit.extraction.extraction_schema import NO_FIELDS, Extraction, FieldStatus, FieldValue, IterationRecord
from evalkit.extraction.field_template import FieldNeed, FieldTemplate
from evalkit.extraction.optimizer import (
    LOOP_PROFILES,
    EvaluationFeedback,
    EvaluationIssue,
    EvaluationSeverity,
    ExtractionOptimizer,
    ReliabilityLoopConfig,
)
from evalkit.extraction.value_grounding import build_agent_failure
from evalkit.issue import Issue, IssueSeverity, number_issues
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Model

log = logging.getLogger(__name__)

TIMED_OUT = "Timeout exceeded"
NOT_JUDGED = "The evaluation could not be completed"
NOT_EXTRACTED = "The extractor gave no usable answer"

#: Required and important values with less confidence go to a person: values of the second pass are wrong more often.
MIN_SURE_CONFIDENCE = 0.85

#: Function called after each attempt with its number and score; the score is None if a judge could not answer.
ProgressCallback = Callable[[int, float | None], None]

_ISSUE_SEVERITIES: dict[EvaluationSeverity, IssueSeverity] = {
    "critical": IssueSeverity.BLOCKER,
    "major": IssueSeverity.MAJOR,
    "minor": IssueSeverity.MINOR,
}


@dataclass(frozen=True)
class LoopIteration:
    """One extraction attempt with its evaluation."""

    iteration_number: int
    attempt: ClinicalAttempt
    score: EvaluationScore
    feedback: EvaluationFeedback
    improvement: float | None = None
    """Score minus the score of the attempt before; None for the first attempt or without scores."""
    normalised: tuple[str, ...] = ()
    """Lossless changes made to read the answers of the extractor and the judges."""


@dataclass(frozen=True)
class ReliabilityLoopResult:
    """All attempts at one report, the best attempt, and why they ended."""

    best_iteration: LoopIteration | None
    """None if no attempt was evaluated."""
    history: tuple[LoopIteration, ...]
    met_threshold: bool
    stopped_reason: str
    processing_seconds: float
    failure: Issue | None = None
    """The issue that the extractor or evaluator could not answer; None if both answered."""

    @property
    def final_score(self) -> float | None:
        """The best attempt's score, 0..1; None if no attempt has a score."""
        return self.best_iteration.score.overall if self.best_iteration else None

    @property
    def iteration_count(self) -> int:
        """Number of evaluated attempts."""
        return len(self.history)

    @property
    def decision(self) -> Literal["AUTO_ACCEPT", "ESCALATE_TO_SME"]:
        """AUTO_ACCEPT if the threshold is met and all issues are minor, else escalate.

        A report without any required field is never accepted, because its type may be wrong; neither is a report with a
        required or important value that the extractor was not sure of.
        """
        best = self.best_iteration
        is_accepted = (
            best is not None
            and self.met_threshold
            and not self.failure
            and not has_no_required_fields(best.attempt)
            and not list_unsure_fields(best.attempt)
            and all(issue.severity == "minor" for issue in best.feedback.issues)
        )
        return "AUTO_ACCEPT" if is_accepted else "ESCALATE_TO_SME"


def has_fields_to_judge(template: FieldTemplate) -> bool:
    """Return True if the template has more fields than text, date and author."""
    needs = (FieldNeed.REQUIRED, FieldNeed.IMPORTANT)
    return any(field.reader != "whole_text" for field in template.get_fields_by_need(*needs))


def has_no_required_fields(attempt: ClinicalAttempt) -> bool:
    """Return True if the attempt found none of the template's required fields."""
    return not any(
        get_found_values(attempt.fields, field.name)
        for field in attempt.template.get_fields_by_need(FieldNeed.REQUIRED)
    )


def list_unsure_fields(attempt: ClinicalAttempt) -> list[str]:
    """List names of required or important values below ``MIN_SURE_CONFIDENCE``."""
    checked_names = {
        field.name for field in attempt.template.get_fields_by_need(FieldNeed.REQUIRED, FieldNeed.IMPORTANT)
    }
    return [
        name
        for name, value in attempt.fields.items()
        if value.is_found and get_base_field_name(name) in checked_names and value.confidence < MIN_SURE_CONFIDENCE
    ]


class ReliabilityLoop:
    """Extracts reports in several evaluated attempts; keeps no state between reports."""

    def __init__(
        self,
        config: ReliabilityLoopConfig | None = None,
        model: Model | None = None,
        *,
        extractor: ClinicalExtractor | None = None,
        evaluator: ExtractionEvaluator | None = None,
    ) -> None:
        """Set the stop conditions and the agents.

        ``config``: default: the profile ``batch``. ``model``: asked by the extractor and the evaluator, unless they are
        given; default: the built-in model.
        """
        self.config = config or LOOP_PROFILES["batch"]
        default_model = model or EmbeddedModel()
        self._extractor = extractor or ClinicalExtractor(default_model)
        self._evaluator = evaluator or ExtractionEvaluator(default_model)
        self._optimizer = ExtractionOptimizer()

    async def execute(
        self,
        bundle: DocumentBundle,
        page_numbers: Sequence[int],
        template: FieldTemplate,
        on_progress: ProgressCallback | None = None,
    ) -> ReliabilityLoopResult:
        """Extract the template's fields from these pages, in one or more attempts.

        ``page_numbers``: the report's readable pages. ``on_progress``: called after each attempt.
        """
        started_at = time.monotonic()
        deadline = asyncio.get_running_loop().time() + self.config.timeout_seconds
        report = ClinicalReport([bundle.page(iteration_number) for iteration_number in page_numbers])
        field_mentions = find_mentioned_fields(template, report)
        history: list[LoopIteration] = []
        failure: Issue | None = None
        retry: RetryContext | None = None
        while True:
            iteration_number = len(history) + 1
            try:
                # Both calls have only the remaining time: a hanging call must not block the document.
                async with asyncio.timeout_at(deadline):
                    attempt = await self._extractor.extract(
                        bundle, page_numbers, template, retry, report, field_mentions
                    )
                    if history:
                        attempt = keep_proven_values(attempt, history[-1])
                    evaluation = None if attempt.failure else await self._evaluator.evaluate(attempt)
            except TimeoutError:
                reason = TIMED_OUT
                break
            if evaluation is None:
                reason, failure = NOT_EXTRACTED, build_agent_failure("extractor", attempt.failure, "Read the report")
                break
            previous_score, current_score = history[-1].score.overall if history else None, evaluation.score.overall
            improvement = None
            if previous_score is not None and current_score is not None:
                improvement = round(current_score - previous_score, 4)
            changes = (*attempt.normalised, *evaluation.normalised)
            history.append(
                LoopIteration(iteration_number, attempt, evaluation.score, evaluation.feedback, improvement, changes)
            )
            _log_iteration(bundle, history[-1])
            if on_progress:
                on_progress(iteration_number, current_score)
            if current_score is None:
                reason, failure = NOT_JUDGED, build_agent_failure("evaluator", evaluation.failure, "Read the report")
                break
            continuation = self._optimizer.should_continue(current_score, previous_score, iteration_number, self.config)
            reason = continuation.reason
            if not continuation.should_continue:
                break
            retry = RetryContext(evaluation.feedback, attempt.fields, iteration_number, self.config.quality_threshold)
        best = _select_best_iteration(history)
        met_threshold = best is not None and (best.score.overall or 0.0) >= self.config.quality_threshold
        seconds = time.monotonic() - started_at
        return ReliabilityLoopResult(best, tuple(history), met_threshold, reason, seconds, failure)


def keep_proven_values(attempt: ClinicalAttempt, earlier: LoopIteration) -> ClinicalAttempt:
    """Return the attempt with earlier values that the evaluation did not doubt.

    A kept value replaces another reading of its name. Of the other readings of a repeated field, those are added that
    are new. Issues about claims that a kept value replaces are dropped.
    """
    doubted_names = {issue.field for issue in earlier.feedback.issues if issue.severity != "minor"}
    proven = {
        name: value
        for name, value in earlier.attempt.fields.items()
        if value.is_found and value.confidence >= MIN_SURE_CONFIDENCE and name not in doubted_names
    }
    proven_bases = {get_base_field_name(name) for name in proven}
    proven_values = {(get_base_field_name(name), value.value) for name, value in proven.items()}
    fields = dict(proven)
    for name, value in attempt.fields.items():
        base, _, entry = name.partition(".")
        if base not in proven_bases:
            fields[name] = value
        elif entry.isdigit():  # the entries of this field have no names, and each attempt numbers them anew
            if (base, value.value) not in proven_values:
                free_numbers = (number for number in range(1, len(fields) + 2) if f"{base}.{number}" not in fields)
                fields[f"{base}.{next(free_numbers)}"] = value
        elif entry:
            fields.setdefault(name, value)
    issues = tuple(issue for issue in attempt.grounding_issues if issue.location not in proven)
    return replace(attempt, fields=fields, grounding_issues=issues)


def _select_best_iteration(history: Sequence[LoopIteration]) -> LoopIteration | None:
    """Select the attempt with the highest score, the earliest of equal scores.

    If no attempt has a score, the last attempt.
    """
    scored_iterations = [iteration for iteration in history if iteration.score.overall is not None]
    if not scored_iterations:
        return history[-1] if history else None
    return max(scored_iterations, key=lambda iteration: (iteration.score.overall or 0.0, -iteration.iteration_number))


def _log_iteration(bundle: DocumentBundle, iteration: LoopIteration) -> None:
    """Log an attempt's scores and field names, no document text.

    Source: specification 002, section 8.2.
    """
    dimension_scores = iteration.score.dimension_scores
    log.info(
        "%s",
        json.dumps(
            {
                "event": "marc_iteration",
                "documentId": bundle.sha256[:12],
                "iteration": iteration.iteration_number,
                "score": {
                    "overall": iteration.score.overall,
                    "completeness": round(dimension_scores["completeness"], 4),
                    "accuracy": round(dimension_scores["accuracy"], 4) if "accuracy" in dimension_scores else None,
                    "validity": round(dimension_scores["clinical_validity"], 4),
                    "consistency": round(dimension_scores["consistency"], 4),
                },
                "feedback": {
                    "issueCount": len(iteration.feedback.issues),
                    "criticalCount": sum(issue.severity == "critical" for issue in iteration.feedback.issues),
                    "missingFields": list(iteration.feedback.missing_fields),
                },
                "improvement": iteration.improvement,
                "timestamp": format_zulu_now(),
            }
        ),
    )


def build_extraction(
    result: ReliabilityLoopResult,
    template: FieldTemplate,
    document_type: str,
    page_range: tuple[int, int],
    *,
    page_issues: Sequence[Issue] = (),
) -> Extraction:
    """Convert a loop's result to the stored ``Extraction``, with numbered issues.

    ``page_range``: first and last page of the report. ``page_issues``: issues about unreadable pages; if there are any,
    a person decides. Issues of other attempts that the best attempt does not have are stored as repaired.
    """
    open_issues = _list_issues(result.best_iteration, template) if result.best_iteration else []
    earlier_issues = [
        issue
        for iteration in result.history
        if iteration is not result.best_iteration
        for issue in _list_issues(iteration, template)
    ]
    open_keys = {_make_issue_key(issue) for issue in open_issues}
    vanished_issues = {
        _make_issue_key(issue): issue for issue in earlier_issues if _make_issue_key(issue) not in open_keys
    }
    repaired_issues = [issue.model_copy(update={"status": "repaired"}) for issue in vanished_issues.values()]
    loop_issues = [result.failure] if result.failure else []
    if not result.met_threshold:
        loop_issues.append(_build_threshold_issue(result, template))
    if result.best_iteration:
        if has_no_required_fields(result.best_iteration.attempt):
            loop_issues.append(_build_no_fields_issue(template))
        loop_issues += [
            _build_unsure_issue(name, result.best_iteration.attempt.fields[name], template)
            for name in list_unsure_fields(result.best_iteration.attempt)
        ]
    issues = _number_issues([*page_issues, *loop_issues, *open_issues, *repaired_issues])
    issue_ids = {_make_issue_key(issue): issue.issue_id for issue in issues}
    score, is_judged = result.final_score, has_fields_to_judge(template)
    return Extraction(
        template=template.name,
        document_type=document_type,
        start_page=page_range[0],
        end_page=page_range[1],
        score=score,
        confidence=score or 0.0,
        met_threshold=result.met_threshold,
        stopped_reason=result.stopped_reason if is_judged else NO_FIELDS,
        iterations=result.iteration_count,
        history=tuple(_build_iteration_record(iteration, template, issue_ids) for iteration in result.history),
        issues=tuple(issues),
        decision=("ESCALATE_TO_SME" if page_issues else result.decision) if is_judged else None,
        fields=_order_and_complete_fields(template, result.best_iteration),
    )


def _build_iteration_record(
    iteration: LoopIteration, template: FieldTemplate, issue_ids: dict[tuple[str, str, str], str]
) -> IterationRecord:
    feedback_section = (
        ExtractionOptimizer().build_feedback_section(iteration.feedback, iteration.iteration_number)
        if iteration.feedback.issues
        else ""
    )
    text_fields = {field.name for field in template.fields if field.reader == "whole_text"}
    return IterationRecord(
        iteration=iteration.iteration_number,
        template=template.name,
        score=iteration.score.overall,
        scores={name: round(score, 4) for name, score in iteration.score.dimension_scores.items()},
        improvement=iteration.improvement,
        confidence=iteration.score.overall or 0.0,
        feedback=feedback_section,
        reasoning=iteration.attempt.reasoning,
        issues=tuple(dict.fromkeys(issue_ids[_make_issue_key(issue)] for issue in _list_issues(iteration, template))),
        # The whole text is the same in every attempt, and is stored only with the extraction.
        fields={
            name: value
            for name, value in iteration.attempt.fields.items()
            if get_base_field_name(name) not in text_fields
        },
        normalised=iteration.normalised,
    )


def _order_and_complete_fields(template: FieldTemplate, best: LoopIteration | None) -> dict[str, FieldValue]:
    """Return the best attempt's fields, in the template's order.

    A field without a value is ambiguous, not absent, if the report mentions it or an issue of the evaluation names it.
    """
    if best is None:  # the document's content is unknown
        return dict.fromkeys((field.name for field in template.fields), _UNKNOWN_VALUE)
    field_order = [field.name for field in template.fields]
    doubted_names = best.attempt.field_mentions | {get_base_field_name(issue.field) for issue in best.feedback.issues}
    return {
        name: _UNKNOWN_VALUE if value.status is FieldStatus.NOT_PRESENT and name in doubted_names else value
        for name, value in sorted(
            best.attempt.fields.items(), key=lambda pair: field_order.index(get_base_field_name(pair[0]))
        )
    }


#: The value of a field that the report may have, but that was not found.
_UNKNOWN_VALUE = FieldValue(status=FieldStatus.AMBIGUOUS)


def _list_issues(iteration: LoopIteration, template: FieldTemplate) -> list[Issue]:
    """List the attempt's issues: values not on the page, then the evaluator's issues."""
    ungrounded_names = {issue.location for issue in iteration.attempt.grounding_issues}
    evaluation_issues = [issue for issue in iteration.feedback.issues if issue.field not in ungrounded_names]
    return [
        *iteration.attempt.grounding_issues,
        *(_build_issue(issue, iteration, template) for issue in evaluation_issues),
    ]


def _build_issue(issue: EvaluationIssue, iteration: LoopIteration, template: FieldTemplate) -> Issue:
    value = iteration.attempt.fields.get(issue.field)
    readings = value.candidates if value else ()
    is_missing = not readings and not get_found_values(iteration.attempt.fields, get_base_field_name(issue.field))
    page_number, boxes = (value.page, value.boxes) if value else (None, ())
    facts: dict[str, str] = {}
    if issue.place and not boxes:
        page_number, start, end = issue.place
        page = iteration.attempt.bundle.page(page_number)
        boxes, facts = find_boxes_of_text_span(page, start, end), {"item": page.text[start:end], "doubt": "unread"}
    return Issue.create(
        "evaluator",
        "EXTRACTION-MISSING" if is_missing else "EXTRACTION-VALUE",
        _ISSUE_SEVERITIES[issue.severity],
        issue.description,
        location=issue.field,
        suggested_fix=issue.suggested_fix,
        document_type=template.document_type,
        page=page_number,
        quote=value.quote if value else None,
        boxes=boxes,
        facts=_collect_field_facts(issue.field, template)
        | facts
        | dict(zip(("reading", "second_reading"), readings, strict=False))
        | _collect_place_facts(value),
    )


def _collect_place_facts(value: FieldValue | None) -> dict[str, int]:
    """Collect the pages of an ambiguous value's first two readings.

    Only if places state them.
    """
    place = next((place for place in value.places if place.value in value.candidates[1:2]), None) if value else None
    return {"reading_page": value.page, "second_page": place.page} if value and value.page and place else {}


def _collect_field_facts(field_name: str, template: FieldTemplate) -> dict[str, str]:
    field = template.get_field(get_base_field_name(field_name))
    entry_name = field_name.partition(".")[2]
    return {"field": field.format_entry_label(entry_name) if entry_name else field.short_label} if field else {}


def _build_threshold_issue(result: ReliabilityLoopResult, template: FieldTemplate) -> Issue:
    """Build the issue that the score is too low; below 0.8 it is a blocker.

    Source: specification 002, section 9.3.
    """
    score = result.final_score
    if score is None:
        severity, message = IssueSeverity.BLOCKER, f"No attempt could be scored: {result.stopped_reason}"
    else:
        severity = IssueSeverity.BLOCKER if score < 0.8 else IssueSeverity.MAJOR
        message = f"The best of {result.iteration_count} attempts scores {score * 100:.1f} %, which is not enough: {result.stopped_reason}"
    return Issue.create(
        "evaluator",
        "EXTRACTION-THRESHOLD",
        severity,
        message,
        document_type=template.document_type,
        facts={} if score is None else {"percent": round(100 * score, 1)},
    )


def _build_no_fields_issue(template: FieldTemplate) -> Issue:
    names = ", ".join(field.name for field in template.get_fields_by_need(FieldNeed.REQUIRED))
    return Issue.create(
        "evaluator",
        "EXTRACTION-NONE",
        IssueSeverity.MAJOR,
        f"None of the required fields ({names}) is in the document: is it a {template.display_name.lower()}?",
        document_type=template.document_type,
        facts={"template": template.display_name.lower()},
    )


def _build_unsure_issue(field_name: str, value: FieldValue, template: FieldTemplate) -> Issue:
    return Issue.create(
        "evaluator",
        "EXTRACTION-UNSURE",
        IssueSeverity.MAJOR,
        f"The text read as {field_name} may mean something else (confidence {value.confidence:.2f})",
        location=field_name,
        suggested_fix="Read the value on the page, and confirm or correct it",
        document_type=template.document_type,
        page=value.page,
        quote=value.quote,
        boxes=value.boxes,
        facts=_collect_field_facts(field_name, template) | {"percent": round(100 * value.confidence)},
    )


def _make_issue_key(issue: Issue) -> tuple[str, str, str]:
    return issue.code, issue.location, issue.message


def _number_issues(issues: Sequence[Issue]) -> list[Issue]:
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(1))
    return [
        numbered for issue in issues for numbered in number_issues(issue.agent, [issue], next(numbers[issue.agent]))
    ]
