"""Classification by a language model: its question, answer and computed parts.

A model states what only a reader can know, in the order in which a reader decides: what the pages show, what speaks for
and against, the evidence, and then the types. Long quotes cost tokens, stop some models for recitation, and get words
wrong. So evidence is named by page, paragraph, first and last words, and the quote is cut out of the bundle. Counts,
shares, the mixture and the dominant types follow from these statements and are computed here.

What a model states although it was not asked, such as a count, a share or a quote in full, is kept: V1, V2 and V4 find
its errors as in any other system's answer. So are words that it read only in a page's picture.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from operator import itemgetter
from typing import Any

from pydantic import ConfigDict, Field

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    MixtureEntry,
    PresenceLevel,
    Segment,
    StrictFiniteFloat,
    StrictInt,
    TypePresence,
    compute_mixture,
    normalise_shares,
)
from evalkit.classification.v2_consistency import choose_overall_type
from evalkit.core.records import DiscreetModel
from evalkit.document_types import cache_until_types_change
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.grounding.locate import find_whole_word_spans
from evalkit.grounding.normalise import canonicalise
from evalkit.llm.json_schema import build_inlined_json_schema

#: A passage with more words is no quote: first and last words that are far apart may be chance matches.
MAX_EXTRACTED_QUOTE_WORDS = 60

#: Share of a segment for a type that is only mentioned in it.
MENTION_SHARE = 0.02
#: Smallest share of an embedded document; above the share up to which V4 demands no quote that shows the type.
MIN_EMBEDDED_SHARE = 0.12
#: Largest share of all types of a segment beside a PRIMARY type.
MAX_SECONDARY_SHARE = 0.45


def extract_quote(page: Page, paragraph_number: int | None, first_words: str, last_words: str) -> str | None:
    """Return the shortest passage that starts and ends with a quote's outer words.

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


class _AnswerPart(DiscreetModel):
    """Part of a model's answer.

    The order of the fields is the schema's, and their docstrings are its descriptions.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class EvidenceAnswer(_AnswerPart):
    """A passage that a model names as evidence."""

    page: StrictInt
    """Its page"""
    paragraph: int | None = Field(None, strict=True)
    """Its paragraph's number"""
    first_words: str = ""
    """Its first 3 or 4 words"""
    last_words: str = ""
    """Its last 3 or 4 words"""
    words_in_picture: str = ""
    """Its words, if only the picture shows them"""
    snippet: str = ""
    anchors_found: tuple[str, ...] = ()


class PresenceAnswer(_AnswerPart):
    """A type that a model finds in a segment."""

    evidence: tuple[EvidenceAnswer, ...] = ()
    """Up to 3 passages"""
    document_type: DocumentType
    """What it speaks for"""
    presence_level: PresenceLevel
    """As defined above"""
    document_type_probability: float | None = Field(None, strict=True, allow_inf_nan=False)
    confidence: StrictFiniteFloat
    """0 to 1, earned by the evidence"""
    segment_share: float | None = Field(None, strict=True, allow_inf_nan=False)


class SegmentAnswer(_AnswerPart):
    """A page range that a model considers to be one source document."""

    start_page: StrictInt
    """First page"""
    end_page: StrictInt
    """Last page"""
    notes: str = ""
    """Titles, letterheads, counts, authors"""
    reasoning: str = ""
    """Strongest signs for and against, briefly"""
    types: tuple[PresenceAnswer, ...]
    """Types other than NO_EVIDENCE"""
    segment_index: int | None = Field(None, strict=True)
    segment_page_count: int | None = Field(None, strict=True)
    dominant_type: DocumentType | None = None


class ClassificationAnswer(_AnswerPart):
    """A model's answer about the documents in a file."""

    segments: tuple[SegmentAnswer, ...]
    """In page order"""
    vendor_signals: tuple[str, ...] = ()
    """Laboratories in letterheads or as performers"""
    self_evaluation: str | dict[str, Any] | None = None
    """What you are least sure of, briefly"""
    number_of_segments: int | None = Field(None, strict=True)
    document_mixture: tuple[MixtureEntry, ...] = ()
    dominant_type_overall: DocumentType | None = None


class _RequestedAnswer(ClassificationAnswer):
    self_evaluation: str | None = None  # text only: a provider's structured output allows no object without named keys
    """What you are least sure of, briefly"""


#: Fields that are read if a model states them, but are not asked for.
_UNASKED_FIELDS = frozenset(
    (
        *("number_of_segments", "document_mixture", "dominant_type_overall", "segment_index", "segment_page_count"),
        *("dominant_type", "segment_share", "snippet", "anchors_found", "document_type_probability"),
    )
)


@cache_until_types_change
def build_answer_schema(*, has_pictures: bool = False) -> Mapping[str, Any]:
    """Build the JSON Schema of a classification that is sent to a language model.

    ``has_pictures``: pictures of pages are sent too, so that evidence may have words of a picture.
    """
    unasked_fields = _UNASKED_FIELDS if has_pictures else _UNASKED_FIELDS | {"words_in_picture"}
    return _drop_properties(build_inlined_json_schema(_RequestedAnswer), unasked_fields)


def _drop_properties(schema: Mapping[str, Any], names: AbstractSet[str]) -> dict[str, Any]:
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


def parse_and_complete_answer(answer_text: str, bundle: DocumentBundle) -> ClassificationOutput:
    """Parse a model's answer, extract its quotes from the pages, compute the rest.

    pydantic.ValidationError if the answer has another shape.
    """
    answer = ClassificationAnswer.model_validate_json(answer_text)
    segments = tuple(_complete_segment(index, segment, bundle) for index, segment in enumerate(answer.segments, 1))
    is_mixture_stated = "document_mixture" in answer.model_fields_set
    mixture = answer.document_mixture if is_mixture_stated else compute_mixture(segments)
    return ClassificationOutput(
        dominant_type_overall=answer.dominant_type_overall
        if "dominant_type_overall" in answer.model_fields_set
        else choose_overall_type(segments, mixture),
        number_of_segments=len(segments) if answer.number_of_segments is None else answer.number_of_segments,
        segments=segments,
        document_mixture=mixture,
        vendor_signals=answer.vendor_signals,
        self_evaluation=answer.self_evaluation,
    )


def _complete_segment(index: int, answer: SegmentAnswer, bundle: DocumentBundle) -> Segment:
    page_count = answer.end_page - answer.start_page + 1
    primary_types = {
        presence.document_type for presence in answer.types if presence.presence_level is PresenceLevel.PRIMARY
    }
    # Two types of level PRIMARY contradict each other: the segment has no dominant type, which V2 raises. A stated type
    # does not settle that, because the shares by which V2 would check it are computed.
    is_contradictory = len(primary_types) > 1 and all(presence.segment_share is None for presence in answer.types)
    is_type_stated = "dominant_type" in answer.model_fields_set and not is_contradictory
    computed_type = next(iter(primary_types)) if len(primary_types) == 1 else None
    return Segment(
        segment_index=index if answer.segment_index is None else answer.segment_index,
        start_page=answer.start_page,
        end_page=answer.end_page,
        segment_page_count=page_count if answer.segment_page_count is None else answer.segment_page_count,
        dominant_type=answer.dominant_type if is_type_stated else computed_type,
        reasoning=answer.reasoning,
        segment_composition=tuple(_complete_presences(answer, bundle)),
    )


def _complete_presences(segment: SegmentAnswer, bundle: DocumentBundle) -> Iterator[TypePresence]:
    """Yield the stated presences, then the types left out, as NO_EVIDENCE.

    If shares are stated, nothing is computed or added: V1 and V2 find what is missing or wrong.
    """
    presences = segment.types
    if all(presence.segment_share is None for presence in presences):
        stated_types = {presence.document_type for presence in presences}
        presences += tuple(
            PresenceAnswer(document_type=kind, presence_level=PresenceLevel.NO_EVIDENCE, confidence=0.0)
            for kind in DocumentType
            if kind not in stated_types
        )
        shares = _estimate_shares(segment, presences, bundle)
    else:
        shares = [presence.segment_share or 0.0 for presence in presences]
    for presence, share in zip(presences, shares, strict=True):
        yield TypePresence(
            document_type=presence.document_type,
            presence_level=presence.presence_level,
            confidence=presence.confidence
            if presence.document_type_probability is None
            else min(presence.confidence, presence.document_type_probability),
            segment_share=share,
            top_evidence=tuple(_resolve_evidence(evidence, bundle) for evidence in presence.evidence),
        )


def _estimate_shares(
    segment: SegmentAnswer, presences: Sequence[PresenceAnswer], bundle: DocumentBundle
) -> list[float]:
    """Estimate a segment's shares from presence levels and places of evidence.

    MENTION_ONLY has ``MENTION_SHARE``. EMBEDDED_RAW has the part of the segment's paragraphs from its first to its last
    passage, at least ``MIN_EMBEDDED_SHARE``. PRIMARY has the rest: the other types together never have more than
    ``MAX_SECONDARY_SHARE`` beside it, of which none is pressed below an equal part. Several types of level PRIMARY have
    equal parts. Without PRIMARY the others share the whole, and without any type all have equal shares.
    """
    positions_by_page = _number_paragraphs(segment, bundle)
    weights = [
        MENTION_SHARE
        if presence.presence_level is PresenceLevel.MENTION_ONLY
        else _measure_extent(presence, positions_by_page)
        if presence.presence_level is PresenceLevel.EMBEDDED_RAW
        else 0.0
        for presence in presences
    ]
    primary_indices = [
        index for index, presence in enumerate(presences) if presence.presence_level is PresenceLevel.PRIMARY
    ]
    secondary_total = sum(weights)
    if primary_indices:
        # Only what is above an equal part gives way: else a large type would press a small one below V4's limit.
        equal_part = MAX_SECONDARY_SHARE / (len(presences) - 1)
        least_weights = [min(weight, equal_part) for weight in weights]
        least_total = sum(least_weights)
        excess = secondary_total - least_total
        scale = min(1.0, (MAX_SECONDARY_SHARE - least_total) / excess) if excess > 0 else 0.0
        weights = [least + (weight - least) * scale for least, weight in zip(least_weights, weights, strict=True)]
        for index in primary_indices:
            weights[index] = (1 - least_total - excess * scale) / len(primary_indices)
    elif not secondary_total:
        weights = [1.0] * len(presences)
    return normalise_shares(weights)


def _number_paragraphs(segment: SegmentAnswer, bundle: DocumentBundle) -> dict[int, range]:
    """Count the segment's paragraphs; return the numbers of those on each page."""
    page_numbers = range(max(segment.start_page, 1), min(segment.end_page, bundle.total_pages) + 1)
    counts = [max(len(bundle.page(page_number).paragraphs), 1) for page_number in page_numbers]
    ends = list(accumulate(counts))
    return {
        page_number: range(end - count, end) for page_number, count, end in zip(page_numbers, counts, ends, strict=True)
    }


def _measure_extent(presence: PresenceAnswer, positions_by_page: Mapping[int, range]) -> float:
    positions = [
        page_positions[min(max((evidence.paragraph or 1) - 1, 0), len(page_positions) - 1)]
        for evidence in presence.evidence
        if (page_positions := positions_by_page.get(evidence.page))
    ]
    total = sum(map(len, positions_by_page.values()))
    extent = (max(positions) - min(positions) + 1) / total if positions else 0.0
    return max(extent, MIN_EMBEDDED_SHARE)


def _resolve_evidence(evidence: EvidenceAnswer, bundle: DocumentBundle) -> Evidence:
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


def _join_location_words(evidence: EvidenceAnswer) -> str:
    """Join the first and last words of a passage that is not on its page.

    V4 then reports this quote as absent.
    """
    return " … ".join(filter(None, (evidence.first_words, evidence.last_words)))
