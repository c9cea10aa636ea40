"""Language model's classification, whose quotes are given by their place.

Long quotes cost tokens, stop some models for recitation, and get words wrong. So a model names page, paragraph, first
and last words, and the quote is cut out of the bundle. A quote that the model wrote out is kept and checked by V4
like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.classification.answer_normalisation import normalise_answer
from evalkit.classification.schema import ClassificationOutput, Evidence, Segment, TypePresence
from evalkit.documents.bundle import DocumentBundle
from evalkit.grounding.quote_extraction import extract_quote
from evalkit.llm.answer_text import NormalisedAnswer
from evalkit.llm.json_schema import build_inlined_json_schema


class _EvidenceReference(Evidence):
    snippet: str = ""
    paragraph: int | None = None
    first_words: str = ""
    last_words: str = ""


class _PresenceWithReferences(TypePresence):
    top_evidence: tuple[_EvidenceReference, ...] = ()


class _SegmentWithReferences(Segment):
    segment_composition: tuple[_PresenceWithReferences, ...]


class _AnswerWithReferences(ClassificationOutput):
    segments: tuple[_SegmentWithReferences, ...]


class _RequestedAnswer(_AnswerWithReferences):
    self_evaluation: str | None = None  # text only: a provider's structured output allows no object without named keys


def build_answer_schema() -> Mapping[str, Any]:
    """Build the JSON Schema of a classification that is sent to a language model."""
    return build_inlined_json_schema(_RequestedAnswer)


def normalise_classifier_answer(answer_text: str) -> NormalisedAnswer:
    """Normalise a model's answer to the shape of a classification with places.

    AnswerTextError if the text is not one JSON value; AnswerShapeError if the answer contradicts itself.
    """
    return normalise_answer(answer_text, _AnswerWithReferences)


def parse_answer_and_cut_quotes(answer_text: str, bundle: DocumentBundle) -> ClassificationOutput:
    """Parse a model's answer and replace quotes given by place by the page's words.

    pydantic.ValidationError if the answer has another shape.
    """
    answer = _AnswerWithReferences.model_validate_json(answer_text)
    answer_json = answer.to_json()
    for segment, located_segment in zip(answer_json["segments"], answer.segments, strict=True):
        for presence_json, presence in zip(
            segment["segment_composition"], located_segment.segment_composition, strict=True
        ):
            presence_json["top_evidence"] = [
                {
                    "snippet": _resolve_snippet(evidence, bundle),
                    "page": evidence.page,
                    "anchors_found": list(evidence.anchors_found),
                }
                for evidence in presence.top_evidence
            ]
    return ClassificationOutput.model_validate(answer_json)


def _resolve_snippet(evidence: _EvidenceReference, bundle: DocumentBundle) -> str:
    if evidence.snippet or not 1 <= evidence.page <= bundle.total_pages:
        return evidence.snippet or _join_location_words(evidence)
    return extract_quote(
        bundle.page(evidence.page), evidence.paragraph, evidence.first_words, evidence.last_words
    ) or _join_location_words(evidence)


def _join_location_words(evidence: _EvidenceReference) -> str:
    """Join the first and last words of a passage that is not on its page.

    V4 then reports this quote as absent.
    """
    return " … ".join(filter(None, (evidence.first_words, evidence.last_words)))
