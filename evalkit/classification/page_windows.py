"""Page windows: parts of a long document, each sent to a model separately.

Each window begins with the last page of the window before it. The answer about the second window shows whether a
document continues over the boundary: then that page and the next are in one segment.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from evalkit.classification.findings import PageRange
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    PresenceLevel,
    Segment,
    TypePresence,
    compute_mixture,
)
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import (
    DOUBTS_KEY,
    EXPERT_QUESTION_CODES,
    SUMMARY_KEY,
    V2ConsistencyChecker,
    choose_overall_type,
    get_stated_beginning_probabilities,
)
from evalkit.core.grouping import group_pairs
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity


def split_into_windows(bundle: DocumentBundle, max_characters: int | None) -> list[PageRange]:
    """Split the document into windows of at most ``max_characters``.

    None: a single window. A longer page is a window by itself. Each window but the first begins with the last page of the
    window before it, whose characters are not counted.
    """
    if max_characters is None:
        return [(1, bundle.total_pages)]
    starts, character_count = [1], 0
    for page in bundle.pages:
        if character_count and character_count + len(page.text) > max_characters:
            starts.append(page.page_num)
            character_count = 0
        character_count += len(page.text)
    ends = [*(start - 1 for start in starts[1:]), bundle.total_pages]
    return [(max(start - 1, 1), end) for start, end in zip(starts, ends, strict=True)]


def find_issues_within_windows(
    bundle: DocumentBundle, answers: Sequence[tuple[PageRange, ClassificationOutput]]
) -> list[Issue]:
    """Find the issues of V1 and V2 (structure, consistency) in each window's answer.

    In the joined answer, errors of two windows could cancel each other out. The issues are never auto-fixable, because the
    windows' answers are not kept. A single window gives none: the pipeline checks its answer as usual.
    """
    if len(answers) == 1:
        return []
    return [issue for pages, answer in answers for issue in _check_window_answer(bundle, pages, answer)]


def _check_window_answer(bundle: DocumentBundle, pages: PageRange, answer: ClassificationOutput) -> Iterator[Issue]:
    page_offset = pages[0] - 1
    window_pages = tuple(
        page.model_copy(update={"page_num": page.page_num - page_offset}) for page in bundle.iter_pages(*pages)
    )
    window_bundle = bundle.model_copy(update={"pages": window_pages, "total_pages": len(window_pages)})
    # the stated doubts are kept in the joined answer and raised from there
    shifted_answer = answer.model_copy(
        update={
            "segments": tuple(_shift_segment(segment, -page_offset) for segment in answer.segments),
            "self_evaluation": None,
        }
    )
    for issue in (
        *V1SchemaValidator().validate(shifted_answer, window_bundle),
        *V2ConsistencyChecker().validate(shifted_answer, window_bundle),
    ):
        # questions about types, boundaries and patients need the whole document
        if issue.severity is not IssueSeverity.MINOR and issue.code not in EXPERT_QUESTION_CODES:
            yield issue.model_copy(
                update={
                    "message": f"In the answer about pages {pages[0]} to {pages[1]}, counted from its first page: {issue.message}",
                    "page": None if issue.page is None else issue.page + page_offset,
                    "auto_fixable": False,
                    "facts": {
                        **issue.facts,
                        **({"scope": "window"} if "scope" in issue.facts else {}),
                        "counted_from": pages[0],
                        "window": f"{pages[0]}–{pages[1]}",
                    },
                }
            )


def _shift_segment(segment: Segment, page_offset: int) -> Segment:
    def shift_presences() -> Iterator[TypePresence]:
        for presence in segment.segment_composition:
            evidence = tuple(
                quoted_evidence.model_copy(update={"page": quoted_evidence.page + page_offset})
                for quoted_evidence in presence.top_evidence
            )
            yield presence.model_copy(update={"top_evidence": evidence})

    page_range = {"start_page": segment.start_page + page_offset, "end_page": segment.end_page + page_offset}
    return segment.model_copy(update=page_range | {"segment_composition": tuple(shift_presences())})


def join_window_answers(answers: Sequence[tuple[PageRange, ClassificationOutput]]) -> ClassificationOutput:
    """Join the answers about overlapping windows into one answer.

    A document that continues over a window's boundary is one segment; if the two answers give it different types, its type
    is None. Errors in single answers are found by ``find_issues_within_windows``.
    """
    if len(answers) == 1:
        return answers[0][1]
    segments: list[Segment] = []
    for (first, _), answer in answers:
        first_own_page = first + 1 if segments else first
        for segment in answer.segments:
            if segment.end_page < first_own_page:
                continue
            is_continued = segment.start_page < first_own_page
            own_part = _drop_pages_before(segment, first_own_page) if is_continued else segment
            if is_continued and segments and segments[-1].end_page == first_own_page - 1:
                segments[-1] = _join_segments(segments[-1], own_part)
            else:
                segments.append(own_part)
    numbered_segments = tuple(
        segment.model_copy(update={"segment_index": number}) for number, segment in enumerate(segments, 1)
    )
    count_error = sum(answer.number_of_segments - len(answer.segments) for _, answer in answers)
    mixture = compute_mixture(numbered_segments)
    return ClassificationOutput(
        dominant_type_overall=choose_overall_type(numbered_segments, mixture),
        number_of_segments=len(numbered_segments) + count_error,
        segments=numbered_segments,
        document_mixture=mixture,
        vendor_signals=tuple(dict.fromkeys(name for _, answer in answers for name in answer.vendor_signals)),
        self_evaluation=_join_self_evaluations([answer for _, answer in answers]),
    )


def _join_self_evaluations(answers: Sequence[ClassificationOutput]) -> str | dict[str, Any]:
    summaries = []
    for self_evaluation in (answer.self_evaluation for answer in answers):
        remainder = (
            {name: value for name, value in self_evaluation.items() if name != DOUBTS_KEY}
            if isinstance(self_evaluation, dict)
            else self_evaluation
        )
        if remainder:
            summaries.append(
                str(
                    remainder[SUMMARY_KEY]
                    if isinstance(remainder, dict) and remainder.keys() == {SUMMARY_KEY}
                    else remainder
                )
            )
    summary = " ".join(summaries)
    doubted_pages = {
        page: probability
        for answer in answers
        for page, probability in get_stated_beginning_probabilities(answer.self_evaluation).items()
    }
    if not doubted_pages:
        return summary
    return {
        SUMMARY_KEY: summary,
        DOUBTS_KEY: [{"page": page, "begins": doubted_pages[page]} for page in sorted(doubted_pages)],
    }


def _drop_pages_before(segment: Segment, page: int) -> Segment:
    dropped_count = page - segment.start_page
    return segment.model_copy(
        update={"start_page": page, "segment_page_count": segment.segment_page_count - dropped_count}
    )


def _join_segments(segment: Segment, continuation: Segment) -> Segment:
    parts = segment, continuation
    page_weights = [max(part.end_page - part.start_page + 1, 1) for part in parts]
    presences_by_type = group_pairs(
        (presence.document_type, (presence, weight / sum(page_weights)))
        for part, weight in zip(parts, page_weights, strict=True)
        for presence in part.segment_composition
    )
    is_same_type = segment.dominant_type is continuation.dominant_type
    return segment.model_copy(
        update={
            "end_page": continuation.end_page,
            "segment_page_count": segment.segment_page_count + continuation.segment_page_count,
            "dominant_type": segment.dominant_type if is_same_type else None,
            "reasoning": " ".join(filter(None, (segment.reasoning, continuation.reasoning))),
            "segment_composition": tuple(
                _join_presences(presences_by_type[kind]) for kind in DocumentType if kind in presences_by_type
            ),
        }
    )


def _join_presences(weighted_presences: Sequence[tuple[TypePresence, float]]) -> TypePresence:
    levels = list(PresenceLevel)
    return TypePresence(
        document_type=weighted_presences[0][0].document_type,
        presence_level=min((type_presence.presence_level for type_presence, _ in weighted_presences), key=levels.index),
        confidence=max(type_presence.confidence for type_presence, _ in weighted_presences),
        segment_share=round(
            sum(type_presence.segment_share * weight for type_presence, weight in weighted_presences), 4
        ),
        top_evidence=tuple(
            evidence for type_presence, _ in weighted_presences for evidence in type_presence.top_evidence
        ),
    )
