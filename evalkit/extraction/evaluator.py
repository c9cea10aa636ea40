"""How good an extraction is: complete, accurate, consistent, clinically valid; and what the next attempt should mend.

Source: specification 002, section 3.3.1; contract ruling 16. Each dimension is its own pure function over rules that are
rows. Accuracy is computed from the page first; a model's judgement may only lower it. A judge that could not answer gives
no score: the case goes to a person.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from statistics import median
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, model_validator

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.clinical import LIKELY, MOST, SURE, Found, read, readings, speaks_of
from evalkit.extraction.clinical_rules import ACCURACY, CONSISTENCY, VALIDITY, Fields, base, short, values_of
from evalkit.extraction.report import Report
from evalkit.extraction.schema import FieldStatus, FieldValue
from evalkit.extraction.template import Field, FieldTemplate, Need
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Answer, DocumentQuestion, Model
from evalkit.llm.prompts import fenced, fenced_claims, render

WEIGHTS: Mapping[str, float] = {"completeness": 0.30, "accuracy": 0.40, "consistency": 0.15, "clinical_validity": 0.15}
NEEDED: Mapping[Need, float] = {Need.REQUIRED: 1.0, Need.IMPORTANT: 0.7, Need.OPTIONAL: 0.3}
"""What a field weighs in the completeness."""
MISSING: Mapping[Need, float] = {Need.REQUIRED: 0.0, Need.IMPORTANT: 0.5, Need.OPTIONAL: 0.8}
"""The score of a field that is not there, in the breakdown."""
INVALID, INVALID_FLOOR = 0.1, 0.3
INCONSISTENT, INCONSISTENT_FLOOR = 0.15, 0.5
MOST_NAMED = 10
"""So many items are named in one sentence."""
DOUBTFUL, CRITICAL = 0.8, 0.5
"""Below the first a field's score is an issue, below the second a critical one."""

Severity = Literal["critical", "major", "minor"]


@dataclass(frozen=True)
class FieldScore:
    """One field in one dimension."""

    field: str
    present: bool
    score: float
    issues: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvaluationIssue:
    """What is wrong with one field."""

    severity: Severity
    field: str
    description: str
    suggested_fix: str = ""


@dataclass(frozen=True)
class EvaluationScore:
    """The scores of one attempt, each 0..1."""

    overall: float | None
    """None where a judge could not answer."""
    completeness: float
    accuracy: float | None
    consistency: float
    clinical_validity: float
    breakdown: tuple[FieldScore, ...] = ()

    @property
    def parts(self) -> dict[str, float]:
        """The dimensions that have a score, by name."""
        told = {name: getattr(self, name) for name in WEIGHTS}
        return {name: score for name, score in told.items() if score is not None}


@dataclass(frozen=True)
class EvaluationFeedback:
    """What the next attempt is told. The truth is not known here, and cannot be in it."""

    overall_score: float | None
    issues: tuple[EvaluationIssue, ...] = ()
    missing_fields: tuple[str, ...] = ()
    priority_fields: tuple[str, ...] = ()
    """To look at first in the next attempt."""
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """Scores and feedback of one attempt."""

    score: EvaluationScore
    feedback: EvaluationFeedback
    failure: str | None = None
    """Why a judge could not answer, in words that quote nothing of the document."""


@dataclass(frozen=True)
class Seen:
    """What a look at the report itself shows, whatever an extractor says."""

    spoken: frozenset[str]
    """The fields that it speaks of, or that can be read in it: where no value of them was found, one is missing."""
    items: Mapping[str, tuple[Found, ...]]
    """The values of each field of many values, as far as the embedded model can read them."""


@dataclass(frozen=True)
class Attempt:
    """What an extractor made of one report."""

    bundle: DocumentBundle
    pages: tuple[int, ...]
    """The readable ones that it was read from."""
    template: FieldTemplate
    report: Report
    fields: dict[str, FieldValue]
    unproven: tuple[Issue, ...] = ()
    """Values that were claimed and are not on the page."""
    reasoning: str = ""
    failure: str | None = None
    """Why the extractor could not answer."""
    seen: Seen | None = None
    """None: the report has not been looked at yet."""

    @cached_property
    def shown(self) -> Seen:
        """What the report itself shows."""
        return self.seen or look(self.template, self.report)


# ------------------------------------------------------------------------------------------------- what is there


def look(template: FieldTemplate, report: Report) -> Seen:
    """Look at a report once, for all attempts at it: at what it speaks of, and at what the embedded model reads in it."""
    spoken: set[str] = set()
    items: dict[str, tuple[Found, ...]] = {}
    for one in template.scored:
        # Stains and tests have names, which another look finds wherever they stand; of anything else it finds too much.
        told = tuple(read(one, report, again=one.format in _NAMED))
        if told or speaks_of(one, report) is not None:
            spoken.add(one.name)
        if told and one.many:
            items[one.name] = told
    return Seen(frozenset(spoken), items)


#: Formats of fields whose values have names.
_NAMED = ("marker", "lab")


def unfound(one: Field, fields: Fields, items: Sequence[Found]) -> tuple[str, ...]:
    """The items of a field of many values that the report shows and the extraction lacks.

    Stains are told apart by their names; other values by themselves, as their names can be given in many ways.
    """
    held = [(name.partition(".")[2].lower(), value.value) for name, value in values_of(fields, one.name).items()]
    if one.format == "marker":
        return tuple(found.item for found in items if found.item.lower() not in {item for item, _ in held})
    values = {value for _, value in held}
    return tuple(found.item for found in items if one.normal(found.text) not in values)


def absent(template: FieldTemplate, fields: Fields, spoken: Iterable[str]) -> frozenset[str]:
    """The fields that the document does not have: no value, no doubt, no word of them (specification 002, 7.3)."""
    told = frozenset(spoken)
    return frozenset(
        one.name
        for one in template.scored
        if one.name not in told
        and not values_of(fields, one.name)
        and not any(base(key) == one.name and value.status is FieldStatus.AMBIGUOUS for key, value in fields.items())
    )


# ------------------------------------------------------------------------------------------------- completeness


def completeness(
    template: FieldTemplate,
    fields: Fields,
    spoken: Iterable[str],
    items: Mapping[str, Sequence[Found]] | None = None,
) -> tuple[float, tuple[FieldScore, ...]]:
    """The weighted share of the fields that are there, of those that the document has; 0 where it has none.

    Required fields weigh 1, important ones 0.7, optional ones 0.3; what is absent is out of the denominator. A field of
    many values counts by the share of them that was found, as far as ``items`` tells how many there are.
    """
    gone = absent(template, fields, spoken)
    total = got = 0.0
    scores = []
    for one in template.scored:
        if one.name in gone:
            continue
        held = len(values_of(fields, one.name))
        lost = unfound(one, fields, (items or {}).get(one.name, ())) if held else ()
        share = held / (held + len(lost)) if held else 0.0
        said = (f"{', '.join(lost[:MOST_NAMED])} of {one.name} not extracted",) if lost else ()
        scores.append(FieldScore(one.name, held > 0, share if held else MISSING[one.need], said))
        total += NEEDED[one.need]
        got += NEEDED[one.need] * share
    return (got / total if total else 0.0), tuple(scores)


# ------------------------------------------------------------------------------------------------- accuracy


class Judged(BaseModel):
    """What a judge says about one field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reasoning: str = ""
    field: str
    accurate: bool
    score: float
    """0..1."""
    issue: str | None = None
    """What the source says instead."""


class Judgement(BaseModel):
    """A judge's answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    field_scores: tuple[Judged, ...]

    @model_validator(mode="after")
    def _all_that_was_asked(self, info: ValidationInfo) -> Self:
        """Silence about a value is no judgement of it."""
        asked = (info.context or {}).get("asked", ())
        if set(asked) - {one.field for one in self.field_scores}:
            raise ValueError("not every field was judged")
        return self


def accuracy(
    template: FieldTemplate,
    fields: Fields,
    unproven: Sequence[Issue],
    opinions: Sequence[Judgement] = (),
    contradicted: Mapping[str, str] | None = None,
) -> tuple[float, tuple[FieldScore, ...]]:
    """The mean over all values that were claimed; 0 where none was.

    A value that is not on the page scores 0, one that is in doubt or ``contradicted`` 0.5, one that breaks a rule of
    ``ACCURACY`` that rule's score. Of several opinions the median of each field counts, and it only lowers.
    """
    scores: dict[str, FieldScore] = {}
    names = {one.name: one for one in template.fields}
    for name, value in fields.items():
        if base(name) not in names or names[base(name)].reader == "whole_text":
            continue
        if value.is_found:
            scores[name] = _ruled(name, value)
        elif value.status is FieldStatus.AMBIGUOUS:
            scores[name] = FieldScore(name, False, 0.5, ("What the source says cannot be told",))
    for issue in unproven:
        low = 0.0 if issue.severity is IssueSeverity.BLOCKER else 0.5
        scores[issue.location] = FieldScore(issue.location, False, low, (issue.message,))
    torn = {name: FieldScore(name, True, CRITICAL, (said,)) for name, said in (contradicted or {}).items()}
    for name, lower in [*torn.items(), *_opinion(opinions).items()]:
        known = scores.get(name)
        if known and lower.score < known.score:
            scores[name] = replace(known, score=lower.score, issues=(*lower.issues, *known.issues))
    if not scores:  # a template of nothing but the text itself
        told = [name for name, one in names.items() if one.reader == "whole_text" and values_of(fields, name)]
        return (1.0 if told and not _asks_for_values(template) else 0.0), ()
    return sum(one.score for one in scores.values()) / len(scores), tuple(scores.values())


def _asks_for_values(template: FieldTemplate) -> bool:
    return any(one.reader != "whole_text" for one in template.of(Need.REQUIRED))


def _ruled(name: str, value: FieldValue) -> FieldScore:
    broken = [(rule.score, said) for rule in ACCURACY if (said := rule.broken(name, value))]
    broken.sort(key=lambda pair: pair[0])
    return FieldScore(name, True, broken[0][0] if broken else 1.0, tuple(said for _, said in broken))


def _opinion(opinions: Sequence[Judgement]) -> dict[str, FieldScore]:
    """The median of each field; who did not speak of a field has nothing against it."""
    said: dict[str, list[Judged]] = {}
    for opinion in opinions:
        for one in opinion.field_scores:
            said.setdefault(one.field, []).append(one)
    merged = {}
    for name, judged in said.items():
        scores = [_judged_score(one) for one in judged]
        scores += [1.0] * (len(opinions) - len({id(one) for one in judged}))
        why = next((one.issue for one in judged if one.issue and _judged_score(one) < 1), None)
        merged[name] = FieldScore(
            name, True, median(scores), (short(why),) if why else ("A judge finds it inaccurate",)
        )
    return merged


def _judged_score(one: Judged) -> float:
    score = 0.0 if math.isnan(one.score) else min(max(one.score, 0.0), 1.0)
    return score if one.accurate else min(score, CRITICAL)


# ------------------------------------------------------------------------------------------------- consistency


def consistency(fields: Fields, gone: frozenset[str] = frozenset()) -> tuple[float, tuple[EvaluationIssue, ...]]:
    """1 without any conflict, 0.15 less for each, at least 0.5."""
    issues = tuple(EvaluationIssue("major", rule.field, rule.says) for rule in CONSISTENCY if rule.wrong(fields, gone))
    return max(INCONSISTENT_FLOOR, 1.0 - INCONSISTENT * len(issues)), issues


# ------------------------------------------------------------------------------------------------- clinical validity


def clinical_validity(fields: Fields) -> tuple[float, tuple[EvaluationIssue, ...]]:
    """1 where every value is possible, 0.1 less for each that is not, at least 0.3."""
    issues = []
    for rule in VALIDITY:
        for name, value in values_of(fields, rule.field).items():
            said = value.value or value.raw or ""
            # Exactly these: a name that merely begins so, or holds the letters, is another stain.
            if rule.items and name.partition(".")[2] not in rule.items:
                continue
            if rule.wrong(said):
                issues.append(EvaluationIssue("major", name, f'{rule.says}: "{short(said)}"'))
    return max(INVALID_FLOOR, 1.0 - INVALID * len(issues)), tuple(issues)


# ------------------------------------------------------------------------------------------------- feedback


def feedback_of(
    template: FieldTemplate,
    overall: float | None,
    present: Sequence[FieldScore],
    accurate: Sequence[FieldScore],
    other: Sequence[EvaluationIssue],
) -> EvaluationFeedback:
    """What to mend, the worst first: missing fields, values that are not what the source says, and the other issues."""
    issues: list[EvaluationIssue] = []
    missing: list[str] = []
    severity: Mapping[Need, Severity] = {Need.REQUIRED: "critical", Need.IMPORTANT: "major", Need.OPTIONAL: "minor"}
    for one in present:
        found = template.field(one.field)
        if found is None:
            continue
        if one.present:
            issues += [EvaluationIssue("major", one.field, said) for said in one.issues]
            continue
        missing += [one.field] if found.need is not Need.OPTIONAL else []
        what = found.need.value.capitalize()
        issues.append(
            EvaluationIssue(
                severity[found.need],
                one.field,
                f'{what} field "{one.field}" is missing',
                f"Look for {one.field} information in the document",
            )
        )
    issues += [
        EvaluationIssue("critical" if one.score < CRITICAL else "major", one.field, one.issues[0])
        for one in accurate
        if one.score < DOUBTFUL and one.issues
    ]
    issues += other
    ranked = sorted(issues, key=lambda issue: ("critical", "major", "minor").index(issue.severity))
    priority = tuple(dict.fromkeys(base(issue.field) for issue in ranked if issue.severity != "minor"))
    hints = [hint for one in template.fields if one.name in priority for hint in one.hints]
    return EvaluationFeedback(overall, tuple(ranked), tuple(missing), priority, tuple(dict.fromkeys(hints)))


# ------------------------------------------------------------------------------------------------- the evaluator


class AccuracyQuestion(DocumentQuestion[Judgement]):
    """Does each extracted value say what the source says?"""

    role = "evaluator"
    answer_type = Judgement

    def __init__(self, attempt: Attempt, pages: Sequence[int]) -> None:
        """``pages``: those that the model is shown; it is asked about the values that stand on them."""
        self.bundle = attempt.bundle
        self._attempt = attempt
        self._pages = tuple(pages)
        self._asked = {
            name: value
            for name, value in attempt.fields.items()
            if value.is_found and value.page in self._pages and _is_judged(attempt.template, name)
        }

    @property
    def asks(self) -> bool:
        """Whether there is anything to ask about."""
        return bool(self._asked)

    def worded(self) -> str:
        """The pages, then the values."""
        said = {name: value.raw or value.value for name, value in self._asked.items()}
        return render(
            "Extraction_Evaluator",
            document=fenced(self.bundle, [self.bundle.page(number) for number in self._pages]),
            report=self._attempt.template.display_name,
            fields=fenced_claims(self.bundle, said, "extraction"),
        )

    def offline(self) -> Judgement:
        """Nothing against any value: what can be computed without a language model is not an opinion."""
        return Judgement(
            field_scores=tuple(
                Judged(reasoning="The rules alone judge this.", field=name, accurate=True, score=1.0)
                for name in self._asked
            )
        )

    def read(self, text: str) -> Judgement:
        """The judgement, of every value that was asked about."""
        return Judgement.model_validate_json(text, context={"asked": tuple(self._asked)})


def contradicted(attempt: Attempt) -> dict[str, str]:
    """Values that the report also gives otherwise, each with a sentence: one of the two is wrong, or of something else."""
    told: dict[str, str] = {}
    for name, value in attempt.fields.items():
        one = attempt.template.field(base(name))
        if one and value.is_found and (other := _otherwise(one, name, value, attempt.report)):
            told[name] = f'Extracted "{short(value.value)}" but the source also says "{short(other)}"'
    return told


def _otherwise(one: Field, name: str, value: FieldValue, report: Report) -> str | None:
    """What a first look finds in the place of the value, if both cannot be right; of a report of two specimens, say."""
    differs = _DIFFERS.get(one.format)
    if one.reader == "section" and one.need is Need.REQUIRED:
        differs = _is_other_text
    if differs is None:
        return None
    # Texts explain at length what the microsatellite status may be; the report's own stands beside its label.
    least = SURE if one.format == "msi" else LIKELY
    item = name.partition(".")[2].lower()
    for found in islice(readings(one, report), MOST):
        normal = one.normal(found.text)
        is_same_item = found.item.lower() == item
        if is_same_item and found.confidence >= least and normal and differs(normal, value.value or ""):
            return normal
    return None


def _is_other(said: str, value: str) -> bool:
    return said != value


def _is_other_text(said: str, value: str) -> bool:
    """Not the same text, cut elsewhere."""
    return said not in value and value not in said


def _is_other_result(said: str, value: str) -> bool:
    """One positive, one negative; a share or score that only one of them tells is no conflict."""
    words = said.partition(",")[0], value.partition(",")[0]
    return words[0] != words[1] and all(word in ("positive", "negative", "equivocal") for word in words)


#: By format of fields that have one value, or one of each name: whether two readings of it cannot both be right.
_DIFFERS: Mapping[str, Callable[[str, str], bool]] = {
    "grade": _is_other,
    "msi": _is_other,
    "tmb": _is_other,
    "marker": _is_other_result,
    "lab": _is_other,
}


def _is_judged(template: FieldTemplate, name: str) -> bool:
    one = template.field(base(name))
    return one is not None and one.reader != "whole_text"


class ExtractionEvaluator:
    """Scores an attempt, and says what to mend."""

    def __init__(
        self, model: Model | None = None, *, ensemble: Sequence[Model] = (), window: int | None = None
    ) -> None:
        """``ensemble``: several judges instead of one; the median of what they say counts.

        ``window``: so many characters of a report are shown to a model at once; None: all of it.
        """
        self._models = tuple(ensemble) or (model or EmbeddedModel(),)
        self._window = window

    def check_completeness(self, attempt: Attempt) -> tuple[float, tuple[FieldScore, ...]]:
        """See :func:`completeness`."""
        return completeness(attempt.template, attempt.fields, attempt.shown.spoken, attempt.shown.items)

    def check_clinical_validity(self, attempt: Attempt) -> tuple[float, tuple[EvaluationIssue, ...]]:
        """See :func:`clinical_validity`."""
        return clinical_validity(attempt.fields)

    def check_consistency(self, attempt: Attempt) -> tuple[float, tuple[EvaluationIssue, ...]]:
        """See :func:`consistency`."""
        return consistency(attempt.fields, absent(attempt.template, attempt.fields, attempt.shown.spoken))

    def questions(self, attempt: Attempt) -> list[AccuracyQuestion]:
        """What a judge is asked: one question, or as many as windows of the report with values in them."""
        parts = [AccuracyQuestion(attempt, pages) for pages in windows(attempt.bundle, attempt.pages, self._window)]
        return [question for question in parts if question.asks]

    async def evaluate(self, attempt: Attempt) -> Evaluation:
        """Scores and feedback."""
        asked = self.questions(attempt)
        answers = await asyncio.gather(*(model.ask(question) for model in self._models for question in asked))
        return self.read(attempt, answers)

    def read(self, attempt: Attempt, answers: Sequence[Answer[Judgement]]) -> Evaluation:
        """The evaluation, with the judges' answers: for each judge, one to each question."""
        failed = next((answer for answer in answers if answer.value is None), None)
        told = [answer.value for answer in answers if answer.value is not None]
        each = len(told) // len(self._models) if told else 0
        opinions = [
            Judgement(field_scores=tuple(one for answer in told[at : at + each] for one in answer.field_scores))
            for at in range(0, len(told), each or 1)
        ]
        full, present = self.check_completeness(attempt)
        exact, accurate = accuracy(
            attempt.template, attempt.fields, attempt.unproven, () if failed else opinions, contradicted(attempt)
        )
        agreed, torn = self.check_consistency(attempt)
        valid, odd = self.check_clinical_validity(attempt)
        parts = {"completeness": full, "accuracy": exact, "consistency": agreed, "clinical_validity": valid}
        overall = None if failed else round(sum(WEIGHTS[name] * score for name, score in parts.items()), 4)
        score = EvaluationScore(overall, full, None if failed else exact, agreed, valid, (*present, *accurate))
        feedback = feedback_of(attempt.template, overall, present, accurate, (*torn, *odd))
        return Evaluation(score, feedback, (failed.failure or "no answer") if failed else None)


def windows(bundle: DocumentBundle, pages: Sequence[int], window: int | None) -> list[tuple[int, ...]]:
    """The pages in runs of at most so many characters; a longer page is a run of its own. None: one run."""
    if window is None:
        return [tuple(pages)]
    runs: list[list[int]] = []
    size = 0
    for number in pages:
        length = len(bundle.page(number).text)
        if not runs or size + length > window:
            runs.append([])
            size = 0
        runs[-1].append(number)
        size += length
    return [tuple(run) for run in runs]
