"""Scores of a clinical extraction in four dimensions, and feedback for a retry.

Source: specification 002, section 3.3.1; contract ruling 16. The rules of each dimension are table rows. Accuracy is
computed from the page first; a judge (a model) can only lower it. If a judge could not answer, the attempt gets no
score, and a person decides.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from evalkit.core.grouping import group_by
from evalkit.core.records import DiscreetModel
from evalkit.extraction.clinical.clinical_extractor import (
    ClinicalAttempt,
    find_fields_absent_from_document,
    split_pages_by_size,
)
from evalkit.extraction.clinical.clinical_rules import (
    ACCURACY_RULES,
    CONSISTENCY_RULES,
    VALIDITY_RULES,
    FieldValues,
    get_base_field_name,
    get_found_values,
    shorten_quote,
)
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import FieldNeed, FieldTemplate
from evalkit.extraction.item_count import count_items, find_doubted_values, find_unread_items
from evalkit.extraction.optimizer import EvaluationFeedback, EvaluationIssue, EvaluationSeverity
from evalkit.extraction.partial_values import find_partial_values, find_skipped_rows
from evalkit.extraction.sentence_topics import classify_sentences, find_topic_doubts
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.answer_normalisation import AnswerShapeError
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Answer, DocumentQuestion, Model, list_normalisation_changes
from evalkit.llm.prompts import fence_document, fence_model_output, fill_prompt_template

#: Weight of each dimension in the overall score.
DIMENSION_WEIGHTS: Mapping[str, float] = {
    "completeness": 0.30,
    "accuracy": 0.40,
    "consistency": 0.15,
    "clinical_validity": 0.15,
}
#: Weight of a field in the completeness score, by its importance.
NEED_WEIGHTS: Mapping[FieldNeed, float] = {FieldNeed.REQUIRED: 1.0, FieldNeed.IMPORTANT: 0.7, FieldNeed.OPTIONAL: 0.3}
#: Score of a missing field, by its importance.
MISSING_FIELD_SCORES: Mapping[FieldNeed, float] = {
    FieldNeed.REQUIRED: 0.0,
    FieldNeed.IMPORTANT: 0.5,
    FieldNeed.OPTIONAL: 0.8,
}
_MISSING_SEVERITIES: Mapping[FieldNeed, EvaluationSeverity] = {
    FieldNeed.REQUIRED: "critical",
    FieldNeed.IMPORTANT: "major",
    FieldNeed.OPTIONAL: "minor",
}
#: Deduction for each clinically impossible value, and the lowest clinical validity.
INVALID_PENALTY, INVALID_FLOOR = 0.1, 0.3
#: Deduction for each contradiction, and the lowest consistency.
INCONSISTENT_PENALTY, INCONSISTENT_FLOOR = 0.15, 0.5
#: An accuracy score below the first number raises a major issue, below the second a critical issue.
DOUBTFUL_SCORE, CRITICAL_SCORE = 0.8, 0.5


@dataclass(frozen=True)
class FieldScore:
    """The score of one field in completeness or accuracy, 0..1."""

    field: str
    present: bool
    """True if the field has a value that appears on the page, also an ambiguous value."""
    score: float
    issues: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvaluationScore:
    """The scores of one extraction attempt, each 0..1."""

    overall: float | None
    """Weighted sum of the four dimensions; None if a judge could not answer."""
    completeness: float
    accuracy: float | None
    """None if a judge could not answer."""
    consistency: float
    clinical_validity: float

    @property
    def dimension_scores(self) -> dict[str, float]:
        """Scores by dimension; accuracy is left out if a judge could not answer."""
        scores = {name: getattr(self, name) for name in DIMENSION_WEIGHTS}
        return {name: score for name, score in scores.items() if score is not None}


@dataclass(frozen=True)
class ExtractionEvaluation:
    """The scores of one extraction attempt, and the feedback for the next one."""

    score: EvaluationScore
    feedback: EvaluationFeedback
    failure: str | None = None
    """The reason why a judge could not answer, without document text; None if all answered."""
    normalised: tuple[str, ...] = ()
    """Lossless changes made to read the judges' answers."""


def score_completeness(
    template: FieldTemplate,
    fields: FieldValues,
    mentioned_names: Iterable[str],
    unread_items: Sequence[EvaluationIssue] = (),
) -> tuple[float, tuple[FieldScore, ...]]:
    """Return the weighted share of fields found, and each field's score.

    Required fields weigh 1, important fields 0.7, optional fields 0.3. Fields that the document does not mention
    (``mentioned_names``) are left out, unless the report prints an item of theirs (``unread_items``). A field with
    several values counts by the share of its items that were extracted.
    """
    unread_by_field = group_by(unread_items, lambda issue: issue.field)
    absent_fields = find_fields_absent_from_document(template, fields, {*mentioned_names, *unread_by_field})
    total = earned = 0.0
    scores = []
    for field in template.scored_fields:
        if field.name in absent_fields:
            continue
        held_count = len(get_found_values(fields, field.name))
        is_stated = any(get_base_field_name(name) == field.name and value.value for name, value in fields.items())
        unread = tuple(issue.description for issue in unread_by_field.get(field.name, ()))
        share = held_count / (held_count + len(unread) * field.many) if held_count else 0.0
        scores.append(
            FieldScore(field.name, is_stated, share if held_count else MISSING_FIELD_SCORES[field.need], unread)
        )
        total += NEED_WEIGHTS[field.need]
        earned += NEED_WEIGHTS[field.need] * share
    return (earned / total if total else 0.0), tuple(scores)


class FieldJudgement(DiscreetModel, frozen=True, extra="forbid"):
    """A judge's opinion on the extracted value of one field."""

    reasoning: str = ""
    field: str
    accurate: bool
    score: float
    """Accuracy of the value, 0..1."""
    issue: str | None = None
    """The words of the document, if the value differs from them."""


class AccuracyJudgement(DiscreetModel, frozen=True, extra="forbid"):
    """A judge's answer: an opinion on each value that was asked about."""

    field_scores: tuple[FieldJudgement, ...]


def score_accuracy(
    template: FieldTemplate,
    fields: FieldValues,
    grounding_issues: Sequence[Issue],
    judgements: Sequence[AccuracyJudgement] = (),
    doubts: Iterable[EvaluationIssue] = (),
) -> tuple[float, tuple[FieldScore, ...]]:
    """Return the mean accuracy of all extracted values, and each value's score.

    A value that is not on the page scores 0, a doubtful value 0.5, also one that the report contradicts (``doubts``),
    and a value that breaks a rule of ``ACCURACY_RULES`` gets that rule's score. The median of the judges' scores counts if it is lower. Without extracted
    values accuracy is 0; it is 1 if the template requires nothing but the whole text and the text was found.
    """
    scores = {
        name: _score_by_rules(name, value)
        if value.is_found
        else FieldScore(name, False, 0.5, (_describe_ambiguity(value),))
        for name, value in fields.items()
        if value.status is not FieldStatus.NOT_PRESENT and _is_judged_field(template, name)
    }
    scores |= {
        issue.location: FieldScore(
            issue.location, False, 0.0 if issue.severity is IssueSeverity.BLOCKER else 0.5, (issue.message,)
        )
        for issue in grounding_issues
    }
    doubt_scores = {
        issue.field: FieldScore(issue.field, True, CRITICAL_SCORE, (issue.description,)) for issue in doubts
    }
    for name, lower_score in [*doubt_scores.items(), *_take_median_judgements(judgements).items()]:
        known_score = scores.get(name)
        if known_score and lower_score.score < known_score.score:
            scores[name] = replace(
                known_score, score=lower_score.score, issues=(*lower_score.issues, *known_score.issues)
            )
    if not scores:  # the template may have no field except the whole text
        text_fields = [
            field.name
            for field in template.fields
            if field.reader == "whole_text" and get_found_values(fields, field.name)
        ]
        required_fields = template.get_fields_by_need(FieldNeed.REQUIRED)
        return float(bool(text_fields) and all(field.reader == "whole_text" for field in required_fields)), ()
    return sum(scored_field.score for scored_field in scores.values()) / len(scores), tuple(scores.values())


def _describe_ambiguity(value: FieldValue) -> str:
    """Return a sentence that names the places of an ambiguous value."""
    if not value.places:
        return "The source is unclear here"
    places = dict.fromkeys(
        f'"{shorten_quote(place.value)}" on page {place.page}' for place in value.places if place.value != value.value
    )
    return (
        f'Extracted "{shorten_quote(value.value)}" from page {value.page}, but the source also says '
        f"{', '.join(places)}: which is right?"
    )


def _score_by_rules(name: str, value: FieldValue) -> FieldScore:
    violations = [
        (rule.score_if_violated, error)
        for rule in ACCURACY_RULES
        if (error := rule.describe_value_problem(name, value))
    ]
    violations.sort(key=lambda pair: pair[0])
    return FieldScore(name, True, violations[0][0] if violations else 1.0, tuple(error for _, error in violations))


def _take_median_judgements(judgements: Sequence[AccuracyJudgement]) -> dict[str, FieldScore]:
    """Compute each value's median score; a judge who omits a value gives it 1."""
    all_field_judgements = (field_judgement for judgement in judgements for field_judgement in judgement.field_scores)
    judgements_by_field = group_by(all_field_judgements, lambda field_judgement: field_judgement.field)
    merged_scores = {}
    for name, field_judgements in judgements_by_field.items():
        scores = [_clamp_judged_score(field_judgement) for field_judgement in field_judgements]
        scores += [1.0] * (len(judgements) - len({id(field_judgement) for field_judgement in field_judgements}))
        reason = next(
            (
                field_judgement.issue
                for field_judgement in field_judgements
                if field_judgement.issue and _clamp_judged_score(field_judgement) < 1
            ),
            None,
        )
        merged_scores[name] = FieldScore(
            name, True, median(scores), (shorten_quote(reason),) if reason else ("A judge finds it inaccurate",)
        )
    return merged_scores


def _clamp_judged_score(judgement: FieldJudgement) -> float:
    score = 0.0 if math.isnan(judgement.score) else min(max(judgement.score, 0.0), 1.0)
    return score if judgement.accurate else min(score, CRITICAL_SCORE)


def score_consistency(
    fields: FieldValues, absent_fields: frozenset[str] = frozenset()
) -> tuple[float, tuple[EvaluationIssue, ...]]:
    """Return the score (1 - 0.15 per contradiction, at least 0.5) and the issues.

    ``absent_fields``: fields that the document does not have, so that their absence contradicts nothing.
    """
    issues = tuple(
        EvaluationIssue("major", rule.field_name, rule.message)
        for rule in CONSISTENCY_RULES
        if rule.is_violated(fields, absent_fields)
    )
    return max(INCONSISTENT_FLOOR, 1.0 - INCONSISTENT_PENALTY * len(issues)), issues


def score_clinical_validity(fields: FieldValues) -> tuple[float, tuple[EvaluationIssue, ...]]:
    """Return the score (1 - 0.1 per impossible value, at least 0.3) and the issues."""
    # Only exact names of items: a stain whose name merely begins with or contains "ER" is another stain.
    values = (
        (rule, name, value.value or value.raw or "")
        for rule in VALIDITY_RULES
        for name, value in get_found_values(fields, rule.field_name).items()
        if not rule.item_names or name.partition(".")[2] in rule.item_names
    )
    issues = tuple(
        EvaluationIssue("major", name, f'{rule.message}: "{shorten_quote(text)}"')
        for rule, name, text in values
        if rule.is_invalid(text)
    )
    return max(INVALID_FLOOR, 1.0 - INVALID_PENALTY * len(issues)), issues


def build_feedback(
    template: FieldTemplate,
    overall_score: float | None,
    completeness_scores: Sequence[FieldScore],
    accuracy_scores: Sequence[FieldScore],
    other_issues: Sequence[EvaluationIssue],
) -> EvaluationFeedback:
    """Build the feedback for the next attempt: all problems, worst first."""
    issues: list[EvaluationIssue] = []
    missing: list[str] = []
    for scored_field in completeness_scores:
        field = template.get_field(scored_field.field)
        if field is None:
            continue
        if scored_field.present:
            issues += [EvaluationIssue("major", scored_field.field, description) for description in scored_field.issues]
            continue
        missing += [scored_field.field] if field.need is not FieldNeed.OPTIONAL else []
        issues.append(
            EvaluationIssue(
                _MISSING_SEVERITIES[field.need],
                scored_field.field,
                f'{field.need.value.capitalize()} field "{scored_field.field}" is missing',
                next(iter(scored_field.issues), f"Look for {scored_field.field} information in the document"),
            )
        )
    issues += [
        EvaluationIssue(
            "critical" if scored_field.score < CRITICAL_SCORE else "major", scored_field.field, scored_field.issues[0]
        )
        for scored_field in accuracy_scores
        if scored_field.score < DOUBTFUL_SCORE and scored_field.issues
    ]
    issues += other_issues
    ranked = sorted(issues, key=lambda issue: ("critical", "major", "minor").index(issue.severity))
    priority = tuple(dict.fromkeys(get_base_field_name(issue.field) for issue in ranked if issue.severity != "minor"))
    hints = [hint for scored_field in template.fields if scored_field.name in priority for hint in scored_field.hints]
    return EvaluationFeedback(overall_score, tuple(ranked), tuple(missing), priority, tuple(dict.fromkeys(hints)))


class AccuracyQuestion(DocumentQuestion[AccuracyJudgement]):
    """Question to a judge model: does each extracted value agree with the report?"""

    role = "evaluator"
    answer_type = AccuracyJudgement

    def __init__(self, attempt: ClinicalAttempt, page_numbers: Sequence[int]) -> None:
        """Set the attempt, and the pages to show; the question is about values on them."""
        self.bundle = attempt.bundle
        self._attempt = attempt
        self._page_numbers = tuple(page_numbers)
        #: The values to ask about, by name; without any, the question is not asked.
        self.asked_values = {
            name: value
            for name, value in attempt.fields.items()
            if value.is_found and value.page in self._page_numbers and _is_judged_field(attempt.template, name)
        }

    def render_prompt(self) -> str:
        """Render the pages, then the extracted values."""
        claims = {name: value.raw or value.value for name, value in self.asked_values.items()}
        return fill_prompt_template(
            "Extraction_Evaluator",
            document=fence_document(self.bundle, [self.bundle.page(number) for number in self._page_numbers]),
            report=self._attempt.template.display_name,
            fields=fence_model_output(self.bundle, claims, "extraction"),
        )

    def offline(self) -> AccuracyJudgement:
        """Accept every value: without a language model, only the rules judge."""
        return AccuracyJudgement(
            field_scores=tuple(
                FieldJudgement(reasoning="The rules alone judge this.", field=name, accurate=True, score=1.0)
                for name in self.asked_values
            )
        )

    def parse_answer(self, text: str) -> AccuracyJudgement:
        """Parse the judge's JSON. AnswerShapeError if a value was not judged."""
        judgement = super().parse_answer(text)
        unjudged_names = self.asked_values.keys() - {field_score.field for field_score in judgement.field_scores}
        if unjudged_names:  # without the names of items, which are words of the report
            field_names = sorted(set(map(get_base_field_name, unjudged_names)))
            raise AnswerShapeError(f"field_scores has no score for values of the fields {', '.join(field_names)}")
        return judgement


def _is_judged_field(template: FieldTemplate, field_name: str) -> bool:
    field = template.get_field(get_base_field_name(field_name))
    return field is not None and field.reader != "whole_text"


class ExtractionEvaluator:
    """Scores extraction attempts by rules and judges, and builds feedback."""

    def __init__(
        self, model: Model | None = None, *, ensemble: Sequence[Model] = (), window_characters: int | None = None
    ) -> None:
        """Set the judges: ``model``, or several in ``ensemble``, whose median counts.

        ``window_characters``: most characters of the report in one question; None: the whole report.
        """
        self._models = tuple(ensemble) or (model or EmbeddedModel(),)
        self._window_characters = window_characters

    def questions(self, attempt: ClinicalAttempt) -> list[AccuracyQuestion]:
        """Build the questions to a judge: one for each window of pages with values."""
        candidates = [
            AccuracyQuestion(attempt, pages)
            for pages in split_pages_by_size(attempt.bundle, attempt.page_numbers, self._window_characters)
        ]
        return [question for question in candidates if question.asked_values]

    async def evaluate(self, attempt: ClinicalAttempt) -> ExtractionEvaluation:
        """Ask the judges about an attempt, and return its scores and feedback."""
        questions = self.questions(attempt)
        answers = await asyncio.gather(*(model.ask(question) for model in self._models for question in questions))
        return self.build_evaluation(attempt, answers)

    def build_evaluation(
        self, attempt: ClinicalAttempt, answers: Sequence[Answer[AccuracyJudgement]]
    ) -> ExtractionEvaluation:
        """Combine the scores by rules with the judges' answers.

        ``answers``: one for each question, all of the first judge, then all of the next.
        """
        failed_answer = next((answer for answer in answers if answer.value is None), None)
        judgements = [answer.value for answer in answers if answer.value is not None]
        question_count = len(judgements) // len(self._models) if judgements else 0
        opinions = [
            AccuracyJudgement(
                field_scores=tuple(
                    field_judgement
                    for answer in judgements[start : start + question_count]
                    for field_judgement in answer.field_scores
                )
            )
            for start in range(0, len(judgements), question_count or 1)
        ]
        pages = list(map(attempt.bundle.page, attempt.page_numbers))
        sentences = attempt.report.remember(classify_sentences, lambda: classify_sentences(pages))
        items = attempt.report.remember(
            (count_items, attempt.template.name), lambda: count_items(pages, attempt.template)
        )
        all_unread_items = find_unread_items(items, attempt.fields, attempt.template)
        # A date without a label need not be the report's.
        unread_items = [issue for issue in all_unread_items if issue.severity != "minor"]
        unread_fields = {issue.field for issue in unread_items}
        unread_items += [row for row in find_skipped_rows(pages, attempt.fields) if row.field not in unread_fields]
        mentioned_names = {*attempt.field_mentions, *(issue.field for issue in unread_items)}
        completeness, completeness_scores = score_completeness(
            attempt.template, attempt.fields, mentioned_names, unread_items
        )
        accuracy, accuracy_scores = score_accuracy(
            attempt.template,
            attempt.fields,
            attempt.grounding_issues,
            () if failed_answer else opinions,
            (
                *find_doubted_values(items, attempt.fields, attempt.template),
                *find_topic_doubts(sentences, attempt.fields),
                *find_partial_values(attempt.fields),
            ),
        )
        consistency, consistency_issues = score_consistency(
            attempt.fields, find_fields_absent_from_document(attempt.template, attempt.fields, mentioned_names)
        )
        validity, validity_issues = score_clinical_validity(attempt.fields)
        dimension_scores = {
            "completeness": completeness,
            "accuracy": accuracy,
            "consistency": consistency,
            "clinical_validity": validity,
        }
        overall = (
            None
            if failed_answer
            else round(sum(DIMENSION_WEIGHTS[name] * score for name, score in dimension_scores.items()), 4)
        )
        score = EvaluationScore(overall, completeness, None if failed_answer else accuracy, consistency, validity)
        feedback = build_feedback(
            attempt.template,
            overall,
            completeness_scores,
            accuracy_scores,
            (
                *consistency_issues,
                *validity_issues,
                *(issue for issue in all_unread_items if issue.severity == "minor"),
            ),
        )
        # A field's score holds descriptions only; where it is missing, the item's is what to look for.
        places = {issue.description: issue.place for issue in unread_items}
        placed_issues = tuple(
            replace(issue, place=places.get(issue.description) or places.get(issue.suggested_fix))
            for issue in feedback.issues
        )
        failure = (failed_answer.failure or "no answer") if failed_answer else None
        return ExtractionEvaluation(
            score, replace(feedback, issues=placed_issues), failure, list_normalisation_changes(answers)
        )
