"""Language model's classification, whose quotes are given by their place.

Long quotes cost tokens, stop some models for recitation, and get words wrong. So a model names page, paragraph, first
and last words, and the quote is cut out of the bundle. A quote that the model wrote out is kept and checked by V4
like any other, and so are words that the model read only in a page's picture.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import cache
from operator import itemgetter
from typing import Any

from evalkit.classification.schema import ClassificationOutput, Evidence, Segment, TypePresence
from evalkit.classification.supplied_classification import normalise_classification
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.grounding.locate import find_whole_word_spans
from evalkit.grounding.normalise import canonicalise
from evalkit.llm.answer_text import NormalisedAnswer
from evalkit.llm.json_schema import build_inlined_json_schema

#: A passage with more words is no quote: first and last words that are far apart may be chance matches.
MAX_EXTRACTED_QUOTE_WORDS = 60


def extract_quote(page: Page, paragraph_number: int | None, first_words: str, last_words: str) -> str | None:
    """Return the shortest passage from the first words to the last words of a quote.

    Paragraph ``paragraph_number`` of ``Page.paragraphs`` (from 1) is searched first, then the whole page. None if no
    passage of at most ``MAX_EXTRACTED_QUOTE_WORDS`` words is found.
    """
    has_paragraph = paragraph_number is not None and 1 <= paragraph_number <= len(page.paragraphs)
    texts = [page.paragraphs[paragraph_number - 1]] if has_paragraph and paragraph_number else []
    return next(
        (quote for text in [*texts, page.text] if (quote := _extract_shortest_passage(text, first_words, last_words))),
        None,
    )


def _extract_shortest_passage(text: str, first_words: str, last_words: str) -> str | None:
    canonical_first_words, canonical_last_words = canonicalise(first_words), canonicalise(last_words)
    if not canonical_first_words or not canonical_last_words:
        return None
    last_words_spans = list(find_whole_word_spans(canonical_last_words, text))
    candidate_spans = []
    for start, end in find_whole_word_spans(canonical_first_words, text):
        # In a short quote, the first words may also be the last words.
        ending_index = bisect_left(last_words_spans, start, key=itemgetter(0))
        candidate_spans += (
            [(start, max(end, last_words_spans[ending_index][1]))] if ending_index < len(last_words_spans) else []
        )
    passage = text[slice(*min(candidate_spans, key=lambda span: span[1] - span[0]))] if candidate_spans else ""
    return passage if 0 < len(passage.split()) <= MAX_EXTRACTED_QUOTE_WORDS else None


class _EvidenceReference(Evidence):
    snippet: str = ""
    paragraph: int | None = None
    first_words: str = ""
    last_words: str = ""
    words_in_picture: str = ""


class _PresenceWithReferences(TypePresence):
    top_evidence: tuple[_EvidenceReference, ...] = ()


class _SegmentWithReferences(Segment):
    segment_composition: tuple[_PresenceWithReferences, ...]


class _AnswerWithReferences(ClassificationOutput):
    segments: tuple[_SegmentWithReferences, ...]


class _RequestedAnswer(_AnswerWithReferences):
    self_evaluation: str | None = None  # text only: a provider's structured output allows no object without named keys


@cache
def build_answer_schema(*, has_pictures: bool = False) -> Mapping[str, Any]:
    """Build the JSON Schema of a classification that is sent to a language model.

    ``has_pictures``: pictures of pages are sent too, so that evidence may have words of a picture.
    """
    # That a quote was seen follows from where the model wrote it.
    unasked_names = {"seen_in_picture"} if has_pictures else {"seen_in_picture", "words_in_picture"}
    return _drop_properties(build_inlined_json_schema(_RequestedAnswer), unasked_names)


def _drop_properties(schema: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """Return a copy of a JSON Schema without properties of these names, at any depth."""
    reduced = dict(schema)
    if "items" in schema:
        reduced["items"] = _drop_properties(schema["items"], names)
    if "properties" in schema:
        reduced["properties"] = {
            name: _drop_properties(subschema, names)
            for name, subschema in schema["properties"].items()
            if name not in names
        }
        reduced["required"] = list(reduced["properties"])
    return reduced


def normalise_classifier_answer(answer_text: str) -> NormalisedAnswer:
    """Normalise a model's answer to the shape of a classification with places.

    AnswerTextError if the text is not one JSON value; AnswerShapeError if the answer contradicts itself.
    """
    return normalise_classification(answer_text, _AnswerWithReferences)


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
            presence_json["top_evidence"] = [_resolve_evidence(evidence, bundle) for evidence in presence.top_evidence]
    return ClassificationOutput.model_validate(answer_json)


def _resolve_evidence(evidence: _EvidenceReference, bundle: DocumentBundle) -> Evidence:
    snippet = evidence.snippet
    if not snippet and 1 <= evidence.page <= bundle.total_pages:
        page = bundle.page(evidence.page)
        snippet = extract_quote(page, evidence.paragraph, evidence.first_words, evidence.last_words) or ""
    return Evidence(
        snippet=snippet or evidence.words_in_picture or _join_location_words(evidence),
        page=evidence.page,
        anchors_found=evidence.anchors_found,
        seen_in_picture=bool(evidence.words_in_picture and not snippet),
    )


def _join_location_words(evidence: _EvidenceReference) -> str:
    """Join the first and last words of a passage that is not on its page.

    V4 then reports this quote as absent.
    """
    return " … ".join(filter(None, (evidence.first_words, evidence.last_words)))
