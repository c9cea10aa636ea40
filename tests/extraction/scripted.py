"""Models that say what they are told to, for the loop over clinical reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalkit.extraction.clinical.clinical_extractor import ClaimedField, ClaimedFields, ClinicalQuestion
from evalkit.extraction.evaluator import AccuracyJudgement, FieldJudgement
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.llm.model import Answer, AnswerT, Question, Usage

Said = dict[str, str | None]
"""By field, ``ihcMarkers.ER`` for one of many: the report's words; None: the report does not have it."""
FINE = AccuracyJudgement(field_scores=())
"""Nothing against any value."""
USAGE = Usage(calls=1, input_tokens=100, output_tokens=10, cost_usd="0.01")


def claims(said: Said, page: int = 1, **more: Any) -> ClaimedFields:
    """An extractor's answer."""
    fields = []
    for name, words in said.items():
        field, _, item = name.partition(".")
        status = "found" if words is not None else "not_present"
        fields.append(
            ClaimedField(
                field=field, item=item or None, status=status, value=words, page=page if words else None, **more
            )
        )
    return ClaimedFields(reasoning="As scripted.", fields=tuple(fields))


def judgement_of(**scores: float) -> AccuracyJudgement:
    """A judge's answer; two underscores are a point in a field's name."""
    return AccuracyJudgement(
        field_scores=tuple(
            FieldJudgement(field=name.replace("__", "."), accurate=score >= 1, score=score, issue=f"{name} is wrong")
            for name, score in scores.items()
        )
    )


class Scripted:
    """Says the first answer at the first attempt, and so on; the last one ever after. An answer of None is a failure."""

    name = "scripted"

    def __init__(
        self,
        *answers: ClaimedFields | Said | Callable[[ClinicalQuestion], ClaimedFields] | None,
        judgements: Sequence[AccuracyJudgement | None] = (FINE,),
    ) -> None:
        self._answers = answers
        self._judgements = judgements
        self.asked: list[tuple[str, str]] = []

    def prompts(self, role: str) -> list[str]:
        return [prompt for asked, prompt in self.asked if asked == role]

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        self.asked.append((question.role, question.prompt()))
        number = len(self.prompts(question.role)) - 1
        told: Any = self._judgements if question.role == "evaluator" else self._answers
        value = told[min(number, len(told) - 1)]
        if callable(value):
            value = value(question)
        if isinstance(value, dict):
            value = claims(value)
        if value is None:
            return Answer(question, None, failure="it timed out (LLM-TIMEOUT)", usage=USAGE)
        return Answer(question, value, usage=USAGE)


def found_value(words: str, value: str | None = None, quote: str | None = None, page: int = 1) -> FieldValue:
    """A value that stands on the page."""
    return FieldValue(
        status=FieldStatus.FOUND, value=value or words, raw=words, page=page, quote=quote or words, confidence=0.9
    )
