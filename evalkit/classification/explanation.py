"""The built-in model's reasons for and against document types and boundaries.

The reasons are computed from the document, so they can be given for any program's classification. They name phrases of
the lexicon and learned terms; for a match of a pattern only the pattern's group, because the match could be anything.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalkit.classification.offline.lexicon import describe_cue
from evalkit.classification.offline.model_weights import EmbeddedModelWeights
from evalkit.classification.offline.page_segmentation import PageSegmentation, segment_pages
from evalkit.classification.offline.type_scoring import (
    ClassificationScores,
    ScoredPage,
    combine_page_scores,
    read_page_for_scoring,
)
from evalkit.classification.schema import DocumentType, Segment
from evalkit.core.grouping import group_pairs
from evalkit.core.wording import format_page_range
from evalkit.documents.bundle import DocumentBundle

_MAX_REASONS = 5
#: Highest probability that is shown.
_MAX_PROBABILITY = 0.999


@dataclass(frozen=True)
class WeightedReason:
    """Term or sign with its weight for (above 0) or against a type or boundary."""

    what: str
    weight: float
    """For a type: the contribution to its score minus the mean over all types. For a boundary: log odds."""
    pages: tuple[int, ...]


@dataclass(frozen=True)
class TypeReasons:
    """Probability of a type, and the reasons for and against it."""

    document_type: DocumentType
    probability: float
    reasons: tuple[WeightedReason, ...]
    """The reasons by absolute weight, heaviest first."""


@dataclass(frozen=True)
class SegmentExplanation:
    """Types of a segment's pages, each with its probability and reasons."""

    start_page: int
    end_page: int
    types: tuple[TypeReasons, ...]
    """The five types, most probable first."""


@dataclass(frozen=True)
class BoundaryExplanation:
    """Probability that a document begins on ``page``, and the signs for and against."""

    page: int
    probability: float
    signs: tuple[WeightedReason, ...]


@dataclass(frozen=True)
class ClassificationExplanation:
    """Explanation of a file: types of its segments, and beginnings of documents."""

    segments: tuple[SegmentExplanation, ...]
    beginnings: tuple[BoundaryExplanation, ...]
    turns: tuple[int, ...]
    """Pages on which a document begins because the text changes between readable and unreadable for the model."""

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return asdict(self)


def explain_segment_types(
    bundle: DocumentBundle, segments: Iterable[Segment], model_weights: EmbeddedModelWeights | None = None
) -> ClassificationExplanation:
    """Explain the reasons for and against each document type in these segments.

    The segments may come from any program; those without a page of the file are left out. ``model_weights`` None: the
    weights in use.
    """
    scored_pages = [read_page_for_scoring(page, model_weights=model_weights) for page in bundle.pages]
    spans = [(max(segment.start_page, 1), min(segment.end_page, len(scored_pages))) for segment in segments]
    segmentation = segment_pages(scored_pages)
    return ClassificationExplanation(
        tuple(
            _explain_segment(scored_pages[first_page - 1 : last_page])
            for first_page, last_page in spans
            if first_page <= last_page
        ),
        tuple(_explain_boundaries(segmentation, scored_pages)),
        segmentation.readability_change_pages,
    )


def _explain_segment(pages: Sequence[ScoredPage]) -> SegmentExplanation:
    type_scores = combine_page_scores(pages)
    page_numbers = [page.lexicon_reading.page.page_num for page in pages]
    pages_by_term = _index_pages_by_term(pages)
    types = tuple(
        TypeReasons(
            kind, round(type_scores.probabilities[kind], 4), tuple(_rank_reasons(type_scores, kind, pages_by_term))
        )
        for kind in type_scores.types_by_probability
    )
    return SegmentExplanation(page_numbers[0], page_numbers[-1], types)


def _index_pages_by_term(pages: Sequence[ScoredPage]) -> dict[str, tuple[int, ...]]:
    numbers_by_term = group_pairs((term, page.lexicon_reading.page.page_num) for page in pages for term in page.terms)
    return {term: tuple(dict.fromkeys(page_numbers)) for term, page_numbers in numbers_by_term.items()}


def _rank_reasons(
    type_scores: ClassificationScores, kind: DocumentType, pages_by_term: dict[str, tuple[int, ...]]
) -> list[WeightedReason]:
    type_index = list(DocumentType).index(kind)
    scale = type_scores.damping / type_scores.model_weights.temperature
    reasons = (
        WeightedReason(
            contribution.name if contribution.is_term else f"lexicon, {contribution.name}",
            round(
                (contribution.weights[type_index] - sum(contribution.weights) / len(contribution.weights)) * scale, 3
            ),
            pages_by_term[contribution.name] if contribution.is_term else (),
        )
        for contribution in type_scores.iter_contributions
    )
    letterhead = type_scores.letterhead_weights[type_index : type_index + 1]
    reasons_of_letterhead = [WeightedReason("letterhead that the site knows", odds, ()) for odds in letterhead]
    return _sort_reasons(reason for reason in (*reasons, *reasons_of_letterhead) if reason.weight)


def _sort_reasons(reasons: Iterable[WeightedReason]) -> list[WeightedReason]:
    return sorted(reasons, key=lambda reason: (-abs(reason.weight), reason.what))


def _explain_boundaries(
    segmentation: PageSegmentation, scored_pages: Sequence[ScoredPage]
) -> Iterator[BoundaryExplanation]:
    for join in segmentation.transitions:
        transition_weights = scored_pages[0].model_weights.transition_weights
        signs = [
            WeightedReason(name, transition_weights.get(name, 0.0), (join.page_num,))
            for name in join.signs
            if transition_weights.get(name)
        ]
        yield BoundaryExplanation(
            join.page_num,
            round(join.probability, 4),
            tuple(_sort_reasons(signs)),
        )


def collect_lexicon_reasons(
    bundle: DocumentBundle, first_page: int, last_page: int, kind: DocumentType
) -> list[WeightedReason]:
    """Collect the lexicon's matches for a type on these pages, heaviest first."""
    pages_by_cue = group_pairs(
        ((cue.weight, describe_cue(cue)), page.page_num)
        for page in bundle.iter_pages(first_page, last_page)
        for cue in read_page_for_scoring(page).lexicon_reading.cues
        if cue.document_type is kind
    )
    return _sort_reasons(
        WeightedReason(label, weight, tuple(dict.fromkeys(pages))) for (weight, label), pages in pages_by_cue.items()
    )


def explain_as_text_lines(bundle: DocumentBundle, segments: Iterable[Segment]) -> Iterator[str]:
    """Render the explanation as lines for a terminal.

    For each segment the reasons of its two most probable types; for each possible beginning its signs.
    """
    explanation = explain_segment_types(bundle, segments)
    for segment in explanation.segments:
        pages = _format_page_numbers(range(segment.start_page, segment.end_page + 1))
        probabilities = ", ".join(
            f"{type_reasons.document_type.value} {min(type_reasons.probability, _MAX_PROBABILITY):.1%}"
            for type_reasons in segment.types
        )
        yield f"{pages}: {probabilities}"
        for type_reasons in segment.types[:2]:
            lexicon_reasons = collect_lexicon_reasons(
                bundle, segment.start_page, segment.end_page, type_reasons.document_type
            )[:_MAX_REASONS]
            for heading, reasons in (
                ("lexicon", lexicon_reasons),
                ("for", [reason for reason in type_reasons.reasons if reason.weight > 0][:_MAX_REASONS]),
                ("against", [reason for reason in type_reasons.reasons if reason.weight < 0][:_MAX_REASONS]),
            ):
                if reasons:
                    yield f"  {type_reasons.document_type.value}, {heading}: " + "; ".join(map(_format_reason, reasons))
    for beginning in explanation.beginnings:
        signs = ", ".join(f"{sign.what} {sign.weight:+.2f}" for sign in beginning.signs)
        yield f"page {beginning.page} begins a document: {min(beginning.probability, _MAX_PROBABILITY):.1%} ({signs}, and its type)"
    for page in explanation.turns:
        yield f"page {page} begins a document: text that the model can read and text that it cannot meet there"


def _format_reason(reason: WeightedReason) -> str:
    return f"{reason.what} {reason.weight:+.2f}" + (f" ({_format_page_numbers(reason.pages)})" if reason.pages else "")


def _format_page_numbers(page_numbers: Iterable[int]) -> str:
    number_list = list(page_numbers)
    if number_list == list(range(number_list[0], number_list[-1] + 1)):
        return format_page_range(number_list[0], number_list[-1])
    return "pages " + ", ".join(map(str, number_list))
