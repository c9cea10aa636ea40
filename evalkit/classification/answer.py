"""What a language model answers about a document: a classification whose quotes may be given by their place.

Long quotes cost tokens, stop some models for recitation, and get words wrong. So a model names page, paragraph, first
and last words, and the quote is cut out of the bundle; one that it wrote out is taken as it is, and grounded like any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.classification.schema import ClassificationOutput, Evidence, Segment, TypePresence
from evalkit.documents.bundle import DocumentBundle
from evalkit.grounding.cut import cut
from evalkit.llm.wire import lean_schema


class _Evidence(Evidence):
    snippet: str = ""
    paragraph: int | None = None
    first_words: str = ""
    last_words: str = ""


class _Presence(TypePresence):
    top_evidence: tuple[_Evidence, ...] = ()


class _Segment(Segment):
    segment_composition: tuple[_Presence, ...]


class _Answer(ClassificationOutput):
    segments: tuple[_Segment, ...]


class _Asked(_Answer):
    self_evaluation: str | None = None  # a schema for models has no free objects


def answer_schema() -> Mapping[str, Any]:
    """The JSON Schema that a language model is sent."""
    return lean_schema(_Asked)


def read_answer(text: str, bundle: DocumentBundle) -> ClassificationOutput:
    """The classification in a model's answer. pydantic.ValidationError where it has not that shape."""
    answer = _Answer.model_validate_json(text)
    plain = answer.to_json()
    for segment, given in zip(plain["segments"], answer.segments, strict=True):
        for row, presence in zip(segment["segment_composition"], given.segment_composition, strict=True):
            row["top_evidence"] = [
                {
                    "snippet": _snippet(evidence, bundle),
                    "page": evidence.page,
                    "anchors_found": list(evidence.anchors_found),
                }
                for evidence in presence.top_evidence
            ]
    return ClassificationOutput.model_validate(plain)


def _snippet(evidence: _Evidence, bundle: DocumentBundle) -> str:
    if evidence.snippet or not 1 <= evidence.page <= bundle.total_pages:
        return evidence.snippet or _told(evidence)
    page = bundle.page(evidence.page)
    return cut(page, evidence.paragraph, evidence.first_words, evidence.last_words) or _told(evidence)


def _told(evidence: _Evidence) -> str:
    """What the model said of a passage that is not there: V4 says that it is nowhere."""
    return " … ".join(filter(None, (evidence.first_words, evidence.last_words)))
