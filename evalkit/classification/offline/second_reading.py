"""Second, offline classification of each segment, to check a model's types.

Source: contract ruling 20 a. The types of a language model or another system are compared with the combined
probabilities of the embedded classifier (words) and of ``acts``, which share no lists. A contradiction raises an issue
for a person; the answer is not changed, and the models are asked all the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from evalkit.classification.findings import cut_quote_unless_identifying
from evalkit.classification.offline.acts import MAX_OWN_PAGES, read_act_of_segment
from evalkit.classification.offline.model_weights import EmbeddedModelWeights
from evalkit.classification.offline.second_opinion_boundaries import get_contained_types
from evalkit.classification.offline.type_scoring import (
    ScoredPage,
    combine_page_scores,
    read_page_for_scoring,
    select_term_cues,
)
from evalkit.classification.schema import ClassificationOutput, DocumentType, Segment, to_percent
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity

SECOND_READING_CODE: Final = "V2-SECOND-READING"

#: Minimum probability of the likeliest type in a reading that may contradict an answer.
_MIN_READ_PROBABILITY = 0.5
#: Added to each probability, so that a single reading cannot rule out a type.
_MIN_PROBABILITY = 1e-4


def combine_readings(
    word_probabilities: Mapping[DocumentType, float], act_probabilities: Mapping[DocumentType, float] | None
) -> dict[DocumentType, float]:
    """Combine two classifications into probabilities of the types, with sum 1.

    The normalised product, as for independent readings. ``act_probabilities`` None: words alone.

    >>> halves = dict.fromkeys(DocumentType, 0.2)
    >>> round(combine_readings(halves, halves | {DocumentType.OTHER: 0.4})[DocumentType.OTHER], 3)
    0.333
    """
    if act_probabilities is None:
        return dict(word_probabilities)
    products = {
        kind: (probability + _MIN_PROBABILITY) * (act_probabilities[kind] + _MIN_PROBABILITY)
        for kind, probability in word_probabilities.items()
    }
    total = sum(products.values())
    return {kind: product / total for kind, product in products.items()}


def find_second_reading_issues(
    classification: ClassificationOutput, bundle: DocumentBundle, weights: EmbeddedModelWeights
) -> Iterator[Issue]:
    """Raise V2-SECOND-READING where the second classification contradicts the type."""
    for segment in classification.segments:
        pages = [
            read_page_for_scoring(page, weights)
            for page in bundle.iter_pages(segment.start_page, segment.end_page)
            if page.text.strip()
        ]
        if segment.dominant_type is None or not pages:
            continue
        # the probability of a type without training texts means nothing
        if weights.training_group_counts.get(segment.dominant_type.value, 0) == 0:
            continue
        probabilities = combine_readings(
            _read_words(pages, segment.dominant_type, get_contained_types(segment)),
            _read_acts(segment, segment.dominant_type, bundle),
        )
        is_contradicted = (
            probabilities[segment.dominant_type] < weights.max_contradicted_probability
            and max(probabilities.values()) >= _MIN_READ_PROBABILITY
        )
        if is_contradicted:
            yield _build_second_reading_issue(segment, segment.dominant_type, probabilities, pages)


def _read_words(
    pages: Sequence[ScoredPage], claimed_type: DocumentType, contained_types: AbstractSet[DocumentType]
) -> Mapping[DocumentType, float]:
    """Return the types' probabilities by the words of a segment.

    If the answer says that the segment contains other types, its first pages are also read alone where the remaining pages
    read like one of these; the reading that is best for the claimed type counts.
    """
    readings = [
        combine_page_scores(pages),
        *(
            combine_page_scores(pages[:count])
            for count in range(1, min(len(pages), MAX_OWN_PAGES + 1) if contained_types else 1)
            if combine_page_scores(pages[count:]).types_by_probability[0] in contained_types
        ),
    ]
    return max((reading.probabilities for reading in readings), key=lambda probabilities: probabilities[claimed_type])


def _read_acts(
    segment: Segment, claimed_type: DocumentType, bundle: DocumentBundle
) -> Mapping[DocumentType, float] | None:
    """Return the types' probabilities by the act of a segment.

    None if the segment has too little text. The claimed type has its ``compute_act_probability``.
    """
    reading = read_act_of_segment(segment, bundle)
    if reading is None:
        return None
    claimed_probability = reading.compute_act_probability(claimed_type, get_contained_types(segment))
    return {**reading.probabilities, claimed_type: claimed_probability}


def _build_second_reading_issue(
    segment: Segment, claimed_type: DocumentType, probabilities: Mapping[DocumentType, float], pages: list[ScoredPage]
) -> Issue:
    other_type = max((kind for kind in probabilities if kind is not claimed_type), key=lambda kind: probabilities[kind])
    cues = sorted(
        (
            (cue.weight, page_index, cue)
            for page_index, page in enumerate(pages)
            for cue in (*page.lexicon_reading.cues, *select_term_cues(page, other_type))
            if cue.document_type is other_type
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
        f"Segment {segment.segment_index} is called {claimed_type.value}, but a second reading finds that only "
        f"{probabilities[claimed_type]:.0%} likely; {other_type.value} is {probabilities[other_type]:.0%} likely",
        location=f"segment {segment.segment_index} → dominant_type",
        suggested_fix=f"Check whether the segment is {other_type.value}",
        segment_index=segment.segment_index,
        document_type=claimed_type.value,
        page=page.page_num,
        quote=quote,
        facts={
            "pages": segment.page_range_text,
            "percent": to_percent(probabilities[claimed_type]),
            "other": other_type.value,
            "other_percent": to_percent(probabilities[other_type]),
        },
    )
