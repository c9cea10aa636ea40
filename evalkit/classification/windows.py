"""Long documents in windows: whatever is asked is asked about every page.

Windows of the classifier share one page with the one before: whether a document goes on over the join shows in the
second answer, which has that page and the next in one segment, or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalkit.classification.findings import Pages
from evalkit.classification.primary_classifier import dominant_overall, mixture_of
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.documents.bundle import DocumentBundle


def windows(bundle: DocumentBundle, most: int | None, *, shared: int = 0) -> list[Pages]:
    """Page ranges of at most ``most`` characters each, which cover the document; None: one for all.

    A page that is longer is a window of its own. From the second on, each begins with the last ``shared`` pages of the
    one before, which are not counted.
    """
    if most is None:
        return [(1, bundle.total_pages)]
    starts, filled = [1], 0
    for page in bundle.pages:
        if filled and filled + len(page.text) > most:
            starts.append(page.page_num)
            filled = 0
        filled += len(page.text)
    ends = [*(start - 1 for start in starts[1:]), bundle.total_pages]
    return [(max(start - shared, 1) if start > 1 else 1, end) for start, end in zip(starts, ends, strict=True)]


def joined(answers: Sequence[tuple[Pages, ClassificationOutput]]) -> ClassificationOutput:
    """The answers about windows, each but the first with one shared page, as one about the whole document.

    What is wrong in one of them stays wrong: it is V1's and V2's to find. Where a document goes on over a join and the
    two answers call it different types, nobody can tell its type.
    """
    if len(answers) == 1:
        return answers[0][1]
    segments: list[Segment] = []
    for (first, _), answer in answers:
        own = first + 1 if segments else first
        for segment in answer.segments:
            if segment.end_page < own:
                continue
            begun = segment.start_page < own
            kept = _from(segment, own) if begun else segment
            if begun and segments and segments[-1].end_page == own - 1:
                segments[-1] = _continued(segments[-1], kept)
            else:
                segments.append(kept)
    numbered = tuple(segment.model_copy(update={"segment_index": number}) for number, segment in enumerate(segments, 1))
    miscounted = sum(answer.number_of_segments - len(answer.segments) for _, answer in answers)
    is_complete = all(_types(segment) == set(DocumentType) for segment in numbered)
    mixture = mixture_of(numbered) if is_complete else ()
    return ClassificationOutput(
        dominant_type_overall=dominant_overall(numbered, mixture) if mixture else None,
        number_of_segments=len(numbered) + miscounted,
        segments=numbered,
        document_mixture=mixture,
        vendor_signals=tuple(dict.fromkeys(name for _, answer in answers for name in answer.vendor_signals)),
        self_evaluation=" ".join(str(answer.self_evaluation) for _, answer in answers if answer.self_evaluation),
    )


def _types(segment: Segment) -> set[DocumentType]:
    return {presence.document_type for presence in segment.segment_composition}


def _from(segment: Segment, page: int) -> Segment:
    """The segment without its pages before ``page``."""
    fewer = page - segment.start_page
    return segment.model_copy(update={"start_page": page, "segment_page_count": segment.segment_page_count - fewer})


def _continued(segment: Segment, more: Segment) -> Segment:
    pages = segment.segment_page_count + more.segment_page_count
    same = segment.dominant_type is more.dominant_type
    return segment.model_copy(
        update={
            "end_page": more.end_page,
            "segment_page_count": pages,
            "dominant_type": segment.dominant_type if same else None,
            "reasoning": " ".join(filter(None, (segment.reasoning, more.reasoning))),
            "segment_composition": tuple(
                _together(
                    kind, [(segment, segment.segment_page_count / pages), (more, more.segment_page_count / pages)]
                )
                for kind in DocumentType
                if kind in _types(segment) | _types(more)
            ),
        }
    )


def _together(kind: DocumentType, parts: Sequence[tuple[Segment, float]]) -> TypePresence:
    rows = [
        (presence, weight)
        for segment, weight in parts
        for presence in segment.segment_composition
        if presence.document_type is kind
    ]
    levels = list(PresenceLevel)
    return TypePresence(
        document_type=kind,
        presence_level=min((row.presence_level for row, _ in rows), key=levels.index),
        confidence=max(row.confidence for row, _ in rows),
        segment_share=round(sum(row.segment_share * weight for row, weight in rows), 4),
        top_evidence=tuple(evidence for row, _ in rows for evidence in row.top_evidence),
    )
