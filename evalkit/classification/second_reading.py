"""What the embedded classifier sees in pages that another program has typed (contract ruling 20 a).

A language model's answer, or another system's, is read a second time, free and offline. The second reading never takes
the place of a model's question and decides nothing itself: a calibrated contradiction is put to a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evalkit.classification.acts import read_act_of_segment
from evalkit.classification.findings import cut_quote_unless_identifying
from evalkit.classification.model_weights import EmbeddedModelWeights
from evalkit.classification.schema import ClassificationOutput, DocumentType, Segment
from evalkit.classification.type_scoring import (
    ClassificationScores,
    ScoredPage,
    combine_page_scores,
    read_page_for_scoring,
    select_term_cues,
)
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity

SECOND_READING_CODE: Final = "V2-SECOND-READING"

_MIN_READ_PROBABILITY = 0.5
"""A reading that finds no type rather than not, as of a page with few words, contradicts none."""


def find_second_reading_issues(
    classification: ClassificationOutput, bundle: DocumentBundle, weights: EmbeddedModelWeights
) -> Iterator[Issue]:
    """Raise V2-SECOND-READING for each segment whose pages the embedded classifier reads as another type."""
    for segment in classification.segments:
        pages = [
            read_page_for_scoring(page, weights)
            for page in bundle.iter_pages(segment.start_page, segment.end_page)
            if page.text.strip()
        ]
        if segment.dominant_type is None or not pages:
            continue
        scores = combine_page_scores(pages)
        read_type = scores.types_by_probability[0]
        # Of a type that was never learned its probability says nothing.
        is_learned = weights.training_group_counts.get(segment.dominant_type.value, 0) > 0
        is_contradicted = (
            scores.probabilities[segment.dominant_type] < weights.max_contradicted_probability
            and scores.probabilities[read_type] >= _MIN_READ_PROBABILITY
        )
        if is_learned and is_contradicted and not _is_plainly_other(segment, bundle):
            yield _build_second_reading_issue(segment, segment.dominant_type, read_type, scores, pages)


def _is_plainly_other(segment: Segment, bundle: DocumentBundle) -> bool:
    """Called Other, and read as performing no act: Other is everything else, more than any classifier has learned of it."""
    if segment.dominant_type is not DocumentType.OTHER:
        return False
    reading = read_act_of_segment(segment, bundle)
    return reading is not None and reading.likeliest_type is DocumentType.OTHER


def _build_second_reading_issue(
    segment: Segment,
    claimed_type: DocumentType,
    read_type: DocumentType,
    scores: ClassificationScores,
    pages: list[ScoredPage],
) -> Issue:
    cues = sorted(
        (
            (cue.weight, page_index, cue)
            for page_index, page in enumerate(pages)
            for cue in (*page.lexicon_reading.cues, *select_term_cues(page, read_type))
            if cue.document_type is read_type
        ),
        key=lambda weighted_cue: (-weighted_cue[0], weighted_cue[1], weighted_cue[2].start),
    )
    page, quote = pages[0].lexicon_reading.page, None
    for _, page_index, cue in cues:
        cue_page = pages[page_index].lexicon_reading.page
        if quote := cut_quote_unless_identifying(cue_page, cue_page.text, cue.start, cue.end):
            page = cue_page
            break
    return Issue.create(
        "V2",
        SECOND_READING_CODE,
        IssueSeverity.MAJOR,
        f"Segment {segment.segment_index} is called {claimed_type.value}, but a second reading finds "
        f"{read_type.value} ({scores.probabilities[read_type]:.0%}; {claimed_type.value} {scores.probabilities[claimed_type]:.0%})",
        location=f"segment {segment.segment_index} → dominant_type",
        suggested_fix=f"Check whether the segment is {read_type.value}",
        segment_index=segment.segment_index,
        document_type=claimed_type.value,
        page=page.page_num,
        quote=quote,
    )
