"""Long documents in windows: whatever is asked is asked about every page.

Windows share one page with the one before: whether a document goes on over the join shows in the classifier's second
answer, which has that page and the next in one segment, or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalkit.classification.findings import Pages
from evalkit.classification.primary_classifier import dominant_overall, mixture_of
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import DOUBTS, SUMMARY, V2ConsistencyChecker, doubted_joins
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity


def windows(bundle: DocumentBundle, most: int | None) -> list[Pages]:
    """Page ranges of at most ``most`` characters each, which cover the document; None: one for all.

    A page that is longer is a window of its own. From the second on, each begins with the last page of the one before,
    which is not counted: what goes on over the join is seen from both sides.
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
    return [(max(start - 1, 1), end) for start, end in zip(starts, ends, strict=True)]


def faults(bundle: DocumentBundle, answers: Sequence[tuple[Pages, ClassificationOutput]]) -> list[Issue]:
    """What V1 and V2 find in each answer by itself: joined, one answer's mistakes would cancel another's.

    None of it can be repaired, as the answer that it is about is not kept. A document of one window has none here:
    its answer is checked as it is.
    """
    if len(answers) == 1:
        return []
    return [issue for pages, answer in answers for issue in _own_faults(bundle, pages, answer)]


def _own_faults(bundle: DocumentBundle, pages: Pages, answer: ClassificationOutput) -> Iterator[Issue]:
    before = pages[0] - 1
    own = tuple(page.model_copy(update={"page_num": page.page_num - before}) for page in bundle.between(*pages))
    part = bundle.model_copy(update={"pages": own, "total_pages": len(own)})
    # What it doubts of itself is kept when the answers are joined, and said then.
    moved = answer.model_copy(
        update={"segments": tuple(_moved(segment, -before) for segment in answer.segments), "self_evaluation": None}
    )
    for issue in (*V1SchemaValidator().validate(moved, part), *V2ConsistencyChecker().validate(moved, part)):
        if issue.severity is not IssueSeverity.MINOR:
            yield issue.model_copy(
                update={
                    "message": f"In the answer about pages {pages[0]} to {pages[1]}, counted from its first page: {issue.message}",
                    "page": None if issue.page is None else issue.page + before,
                    "auto_fixable": False,
                }
            )


def _moved(segment: Segment, by: int) -> Segment:
    def rows() -> Iterator[TypePresence]:
        for presence in segment.segment_composition:
            evidence = tuple(one.model_copy(update={"page": one.page + by}) for one in presence.top_evidence)
            yield presence.model_copy(update={"top_evidence": evidence})

    pages = {"start_page": segment.start_page + by, "end_page": segment.end_page + by}
    return segment.model_copy(update=pages | {"segment_composition": tuple(rows())})


def joined(answers: Sequence[tuple[Pages, ClassificationOutput]]) -> ClassificationOutput:
    """The answers about windows, each but the first with one shared page, as one about the whole document.

    What is wrong in one of them, ``faults`` says. Where a document goes on over a join and the two answers call it
    different types, nobody can tell its type.
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
    can_be_mixed = all(
        _types(segment) == set(DocumentType)
        and segment.segment_page_count > 0
        and all(presence.segment_share >= 0 for presence in segment.segment_composition)
        and any(presence.segment_share > 0 for presence in segment.segment_composition)
        for segment in numbered
    )
    mixture = mixture_of(numbered) if numbered and can_be_mixed else ()
    return ClassificationOutput(
        dominant_type_overall=dominant_overall(numbered, mixture) if mixture else None,
        number_of_segments=len(numbered) + miscounted,
        segments=numbered,
        document_mixture=mixture,
        vendor_signals=tuple(dict.fromkeys(name for _, answer in answers for name in answer.vendor_signals)),
        self_evaluation=_of_themselves([answer for _, answer in answers]),
    )


def _of_themselves(answers: Sequence[ClassificationOutput]) -> str | dict[str, Any]:
    """What the answers say of themselves in words, and every join that one of them doubts."""
    words = []
    for told in (answer.self_evaluation for answer in answers):
        said = {name: value for name, value in told.items() if name != DOUBTS} if isinstance(told, dict) else told
        if said:
            words.append(str(said[SUMMARY] if isinstance(said, dict) and said.keys() == {SUMMARY} else said))
    summary = " ".join(words)
    doubted = {page: chance for answer in answers for page, chance in doubted_joins(answer).items()}
    if not doubted:
        return summary
    return {SUMMARY: summary, DOUBTS: [{"page": page, "begins": doubted[page]} for page in sorted(doubted)]}


def _types(segment: Segment) -> set[DocumentType]:
    return {presence.document_type for presence in segment.segment_composition}


def _from(segment: Segment, page: int) -> Segment:
    """The segment without its pages before ``page``."""
    fewer = page - segment.start_page
    return segment.model_copy(update={"start_page": page, "segment_page_count": segment.segment_page_count - fewer})


def _continued(segment: Segment, more: Segment) -> Segment:
    counted = segment.segment_page_count + more.segment_page_count
    weights = [max(one.end_page - one.start_page + 1, 1) for one in (segment, more)]
    same = segment.dominant_type is more.dominant_type
    return segment.model_copy(
        update={
            "end_page": more.end_page,
            "segment_page_count": counted,
            "dominant_type": segment.dominant_type if same else None,
            "reasoning": " ".join(filter(None, (segment.reasoning, more.reasoning))),
            "segment_composition": tuple(
                _together(
                    kind, [(one, weight / sum(weights)) for one, weight in zip((segment, more), weights, strict=True)]
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
