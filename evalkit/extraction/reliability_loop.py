"""MARC-v1's loop over one report: extract, evaluate, feed back, extract again, and stop in time.

Source: specification 002, sections 3.3.3, 7.5 and 8; contract ruling 16. The best attempt is returned, not the last. One
deadline covers every call. What the loop cannot vouch for goes to a person.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from evalkit.clocks import now
from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.clinical_rules import base, values_of
from evalkit.extraction.evaluator import (
    Attempt,
    Evaluation,
    EvaluationFeedback,
    EvaluationScore,
    ExtractionEvaluator,
    Severity,
    look,
)
from evalkit.extraction.extractor import Again, ClinicalExtractor
from evalkit.extraction.optimizer import PROFILES, ExtractionOptimizer, ReliabilityLoopConfig
from evalkit.extraction.report import Report
from evalkit.extraction.schema import Extraction, FieldStatus, FieldValue, IterationRecord
from evalkit.extraction.template import FieldTemplate, Need
from evalkit.issue import Issue, IssueSeverity, numbered
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Model

log = logging.getLogger(__name__)

TIMED_OUT = "Timeout exceeded"
NOT_JUDGED = "The evaluation could not be completed"
NOT_EXTRACTED = "The extractor gave no usable answer"

SURE_ENOUGH = 0.85
"""Below it, a value that matters is looked at by a person: what only another look found is wrong more often."""

Progress = Callable[[int, float | None], None]
"""Called after each attempt with its number and score; the score is None where the judge could not answer."""
T = TypeVar("T")

_SEVERITY: dict[Severity, IssueSeverity] = {
    "critical": IssueSeverity.BLOCKER,
    "major": IssueSeverity.MAJOR,
    "minor": IssueSeverity.MINOR,
}


@dataclass(frozen=True)
class Iteration:
    """One attempt, evaluated."""

    iteration: int
    attempt: Attempt
    score: EvaluationScore
    feedback: EvaluationFeedback
    improvement: float | None = None


@dataclass(frozen=True)
class ReliabilityLoopResult:
    """What the loop made of one report."""

    best: Iteration | None
    """None where no attempt was evaluated."""
    history: tuple[Iteration, ...]
    met_threshold: bool
    stopped_reason: str
    processing_seconds: float
    failure: Issue | None = None
    """Which of the two could not answer, and why."""

    @property
    def final_score(self) -> float | None:
        """The best attempt's; None where none has one."""
        return self.best.score.overall if self.best else None

    @property
    def final_data(self) -> dict[str, FieldValue]:
        """The best attempt's fields."""
        return self.best.attempt.fields if self.best else {}

    @property
    def iterations(self) -> int:
        """How many attempts were made."""
        return len(self.history)

    @property
    def decision(self) -> Literal["AUTO_ACCEPT", "ESCALATE_TO_SME"]:
        """Accepted where the threshold is met and only minor issues are open: one wrong value of many hardly lowers a score.

        A report of which no required field is there is never accepted: nothing says that it is such a report. Nor is one
        with a value that its extractor was not sure of.
        """
        best = self.best
        if best is None or not self.met_threshold or self.failure:
            return "ESCALATE_TO_SME"
        if lacks_all(best.attempt) or unsure(best.attempt):
            return "ESCALATE_TO_SME"
        is_clean = all(issue.severity == "minor" for issue in best.feedback.issues)
        return "AUTO_ACCEPT" if is_clean else "ESCALATE_TO_SME"


def lacks_all(attempt: Attempt) -> bool:
    """Whether none of the required fields is there."""
    return not any(values_of(attempt.fields, field.name) for field in attempt.template.of(Need.REQUIRED))


def unsure(attempt: Attempt) -> list[str]:
    """The required and important values whose extractor was less than ``SURE_ENOUGH``."""
    asked = {field.name for field in attempt.template.of(Need.REQUIRED, Need.IMPORTANT)}
    return [
        name
        for name, value in attempt.fields.items()
        if value.is_found and base(name) in asked and value.confidence < SURE_ENOUGH
    ]


class ReliabilityLoop:
    """Runs the loop on one report after another; keeps nothing between them."""

    def __init__(
        self,
        config: ReliabilityLoopConfig | None = None,
        model: Model | None = None,
        *,
        extractor: ClinicalExtractor | None = None,
        evaluator: ExtractionEvaluator | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``config``: the profile ``batch`` without one. ``model`` answers both roles where no other does."""
        self.config = config or PROFILES["batch"]
        asked = model or EmbeddedModel()
        self._extractor = extractor or ClinicalExtractor(asked)
        self._evaluator = evaluator or ExtractionEvaluator(asked)
        self._optimizer = ExtractionOptimizer()
        self._clock = clock

    async def execute(
        self,
        bundle: DocumentBundle,
        pages: Sequence[int],
        template: FieldTemplate,
        on_progress: Progress | None = None,
    ) -> ReliabilityLoopResult:
        """Fill in the template from these pages, which are readable."""
        began = self._clock()
        deadline = asyncio.get_running_loop().time() + self.config.timeout_seconds
        report = Report([bundle.page(number) for number in pages])
        seen = look(template, report)
        history: list[Iteration] = []
        failure: Issue | None = None
        again: Again | None = None
        while True:
            number = len(history) + 1
            # As much time as is left, for each call: one that hangs would else hold a document for ever.
            attempt = await _until(deadline, self._extractor.attempt(bundle, pages, template, again, report, seen))
            if attempt is not None and attempt.failure:
                reason, failure = NOT_EXTRACTED, _agent_failed("extractor", attempt.failure)
                break
            evaluation = await _until(deadline, self._evaluator.evaluate(attempt)) if attempt else None
            if attempt is None or evaluation is None:
                reason = TIMED_OUT
                break
            previous = history[-1].score.overall if history else None
            history.append(_iteration(number, attempt, evaluation, previous))
            current = evaluation.score.overall
            _log(bundle, history[-1])
            if on_progress:
                on_progress(number, current)
            if current is None:
                reason, failure = NOT_JUDGED, _agent_failed("evaluator", evaluation.failure)
                break
            decision = self._optimizer.should_continue(current, previous, number, self.config)
            reason = decision.reason
            if not decision.goes_on:
                break
            again = Again(evaluation.feedback, attempt.fields, number, self.config.quality_threshold)
        best = _best(history)
        met = best is not None and (best.score.overall or 0.0) >= self.config.quality_threshold
        seconds = self._clock() - began
        return ReliabilityLoopResult(best, tuple(history), met, reason, seconds, failure)


def _agent_failed(agent: Literal["extractor", "evaluator"], why: str | None) -> Issue:
    return Issue.of(
        agent,
        f"{agent.upper()}-AGENT-FAILED",
        IssueSeverity.BLOCKER,
        f"The {agent} could not answer: {why or 'no reason given'}",
        suggested_fix="Read the report, or run the document again",
    )


async def _until(deadline: float, call: Awaitable[T]) -> T | None:
    """What the call gives, or None where the deadline comes first."""
    try:
        async with asyncio.timeout_at(deadline):
            return await call
    except TimeoutError:
        return None


def _iteration(number: int, attempt: Attempt, evaluation: Evaluation, previous: float | None) -> Iteration:
    current = evaluation.score.overall
    improvement = None if previous is None or current is None else round(current - previous, 4)
    return Iteration(number, attempt, evaluation.score, evaluation.feedback, improvement)


def _best(history: Sequence[Iteration]) -> Iteration | None:
    """The attempt of the highest score, the first of equal ones; where none has a score, the last."""
    judged = [one for one in history if one.score.overall is not None]
    if not judged:
        return history[-1] if history else None
    return max(judged, key=lambda one: (one.score.overall or 0.0, -one.iteration))


def _log(bundle: DocumentBundle, one: Iteration) -> None:
    """Specification 002, section 8.2: scores and names of fields, nothing of the document."""
    parts = one.score.parts
    log.info(
        "%s",
        json.dumps(
            {
                "event": "marc_iteration",
                "documentId": bundle.sha256[:12],
                "iteration": one.iteration,
                "score": {
                    "overall": one.score.overall,
                    "completeness": round(parts["completeness"], 4),
                    "accuracy": round(parts["accuracy"], 4) if "accuracy" in parts else None,
                    "validity": round(parts["clinical_validity"], 4),
                    "consistency": round(parts["consistency"], 4),
                },
                "feedback": {
                    "issueCount": len(one.feedback.issues),
                    "criticalCount": sum(issue.severity == "critical" for issue in one.feedback.issues),
                    "missingFields": list(one.feedback.missing_fields),
                },
                "improvement": one.improvement,
                "timestamp": now(),
            }
        ),
    )


# ------------------------------------------------------------------------------------------------- what is kept


def extraction_of(
    result: ReliabilityLoopResult,
    template: FieldTemplate,
    document_type: str,
    span: tuple[int, int],
    *,
    more: Sequence[Issue] = (),
) -> Extraction:
    """The result as it is kept, with issues numbered; ``more`` are issues of the pages themselves.

    Issues of earlier attempts that the best one does not have are kept as repaired.
    """
    open_now = _issues(result.best, template) if result.best else []
    earlier = [issue for one in result.history if one is not result.best for issue in _issues(one, template)]
    known = {_key(issue) for issue in open_now}
    gone = {_key(issue): issue for issue in earlier if _key(issue) not in known}
    repaired = [issue.model_copy(update={"status": "repaired"}) for issue in gone.values()]
    stopped = [result.failure] if result.failure else []
    if not result.met_threshold:
        stopped.append(_unmet(result, template))
    if result.best and lacks_all(result.best.attempt):
        stopped.append(_empty(template))
    if result.best:
        stopped += [_guessed(name, result.best.attempt.fields[name], template) for name in unsure(result.best.attempt)]
    issues = _numbered([*more, *stopped, *open_now, *repaired])
    ids = {_key(issue): issue.issue_id for issue in issues}
    fields = _whole(template, result.best)
    score = result.final_score
    return Extraction(
        template=template.name,
        document_type=document_type,
        start_page=span[0],
        end_page=span[1],
        score=score,
        confidence=score or 0.0,
        met_threshold=result.met_threshold,
        stopped_reason=result.stopped_reason,
        iterations=result.iterations,
        history=tuple(_record(one, template, ids) for one in result.history),
        issues=tuple(issues),
        decision="ESCALATE_TO_SME" if more else result.decision,
        fields=fields,
    )


def _record(one: Iteration, template: FieldTemplate, ids: dict[tuple[str, str, str], str]) -> IterationRecord:
    section = ExtractionOptimizer().feedback_section(one.feedback, one.iteration) if one.feedback.issues else ""
    whole = {field.name for field in template.fields if field.reader == "whole_text"}
    return IterationRecord(
        iteration=one.iteration,
        template=template.name,
        score=one.score.overall,
        scores={name: round(score, 4) for name, score in one.score.parts.items()},
        improvement=one.improvement,
        confidence=one.score.overall or 0.0,
        feedback=section,
        reasoning=one.attempt.reasoning,
        issues=tuple(dict.fromkeys(ids[_key(issue)] for issue in _issues(one, template))),
        # The text itself is the same in every attempt, and is kept once.
        fields={name: value for name, value in one.attempt.fields.items() if base(name) not in whole},
    )


def _whole(template: FieldTemplate, best: Iteration | None) -> dict[str, FieldValue]:
    """All fields in the template's order; those that the report speaks of and nobody found are not absent."""
    if best is None:  # nobody knows what the document has
        return dict.fromkeys((field.name for field in template.fields), _UNKNOWN)
    order = [field.name for field in template.fields]
    spoken = best.attempt.shown.spoken
    return {
        name: _UNKNOWN if value.status is FieldStatus.NOT_PRESENT and name in spoken else value
        for name, value in sorted(best.attempt.fields.items(), key=lambda pair: order.index(base(pair[0])))
    }


_UNKNOWN = FieldValue(status=FieldStatus.AMBIGUOUS)
"""Of a field that may be there, and was not found."""


def _issues(one: Iteration, template: FieldTemplate) -> list[Issue]:
    """Values that are not on the page, and what the evaluator found besides them."""
    unproven = {issue.location for issue in one.attempt.unproven}
    told = [issue for issue in one.feedback.issues if issue.field not in unproven]
    return [
        *one.attempt.unproven,
        *(_issue(issue.severity, issue.field, issue.description, issue.suggested_fix, one, template) for issue in told),
    ]


def _issue(
    severity: Severity, field: str, description: str, fix: str, one: Iteration, template: FieldTemplate
) -> Issue:
    value = one.attempt.fields.get(field)
    is_missing = not values_of(one.attempt.fields, base(field))
    return Issue.of(
        "evaluator",
        "EXTRACTION-MISSING" if is_missing else "EXTRACTION-VALUE",
        _SEVERITY[severity],
        description,
        location=field,
        suggested_fix=fix,
        document_type=template.document_type,
        page=value.page if value else None,
        quote=value.quote if value else None,
        boxes=value.boxes if value else (),
    )


def _unmet(result: ReliabilityLoopResult, template: FieldTemplate) -> Issue:
    """Why a person is asked: below 0.8 first (specification 002, section 9.3)."""
    score = result.final_score
    if score is None:
        severity, said = IssueSeverity.BLOCKER, f"No attempt could be scored: {result.stopped_reason}"
    else:
        severity = IssueSeverity.BLOCKER if score < 0.8 else IssueSeverity.MAJOR
        said = f"The best of {result.iterations} attempts scores {score * 100:.1f} %, which is not enough: {result.stopped_reason}"
    return Issue.of("evaluator", "EXTRACTION-THRESHOLD", severity, said, document_type=template.document_type)


def _empty(template: FieldTemplate) -> Issue:
    names = ", ".join(field.name for field in template.of(Need.REQUIRED))
    return Issue.of(
        "evaluator",
        "EXTRACTION-NONE",
        IssueSeverity.MAJOR,
        f"None of the required fields ({names}) is in the document: is it a {template.display_name.lower()}?",
        document_type=template.document_type,
    )


def _guessed(name: str, value: FieldValue, template: FieldTemplate) -> Issue:
    return Issue.of(
        "evaluator",
        "EXTRACTION-UNSURE",
        IssueSeverity.MAJOR,
        f"{name} was read where it may mean something else (confidence {value.confidence:.2f})",
        location=name,
        suggested_fix="Look at the place, and keep or correct the value",
        document_type=template.document_type,
        page=value.page,
        quote=value.quote,
        boxes=value.boxes,
    )


def _key(issue: Issue) -> tuple[str, str, str]:
    return issue.code, issue.location, issue.message


def _numbered(issues: Sequence[Issue]) -> list[Issue]:
    """Each agent's issues numbered from 1."""
    counts: dict[str, int] = {}
    told = []
    for issue in issues:
        counts[issue.agent] = counts.get(issue.agent, 0) + 1
        told += numbered(issue.agent, [issue], counts[issue.agent])
    return told
