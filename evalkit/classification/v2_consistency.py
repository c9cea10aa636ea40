"""V2: consistency of the answer with itself, and of the text with the types.

Source: specification 000, slide 4; contract rulings 2, 3, 8 and 12. Rules check the answer with itself. A model is
asked if the text fits the types, unless the rules found a BLOCKER.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from evalkit.classification.autofix import has_unit_sum, is_repairable
from evalkit.classification.findings import ShippedVerifier
from evalkit.classification.offline.acts import (
    ACT_IN_OTHER_CODE,
    NO_ACT_CODE,
    find_act_issues,
    find_contradicted_types,
)
from evalkit.classification.offline.model_weights import EmbeddedModelWeights
from evalkit.classification.offline.second_opinion_boundaries import (
    BEGINNING_THRESHOLD,
    BOUNDARY_DOUBT_CODE,
    UNSUPPORTED_THRESHOLD,
    find_boundary_issues,
    weigh_boundary,
)
from evalkit.classification.offline.second_reading import SECOND_READING_CODE, find_second_reading_issues
from evalkit.classification.page_order import (
    PAGES_MISSING_CODE,
    PAGES_ORDER_CODE,
    PAGES_REPEATED_CODE,
    find_page_order_issues,
)
from evalkit.classification.patient_check import (
    ANY_PATIENT,
    PATIENT_CODES,
    PatientExpectation,
    find_patient_issues,
)
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
    convert_to_decimals,
    to_percent,
)
from evalkit.classification.v1_schema import MIXTURE_LOCATION, describe_scope
from evalkit.core.wording import format_page_range
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity, number_issues

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR

#: Key of ``self_evaluation`` for boundaries of which the classifier is unsure: ``[{"page": 3, "begins": 0.46}]``, where
#: ``begins`` is the probability that a document begins on the page.
DOUBTS_KEY = "doubtful_joins"
#: Key of ``self_evaluation`` for its text.
SUMMARY_KEY = "summary"

UNSURE_CODE: Final = "V2-UNSURE"
#: Confidence in a PRIMARY type below which V2-UNSURE is raised; set by ruling 21, not yet calibrated.
MIN_CONFIDENCE = 0.5
#: Codes of questions that an expert decides; they do not keep an expert's own answer from being valid (ruling 37).
EXPERT_QUESTION_CODES = PATIENT_CODES | {
    BOUNDARY_DOUBT_CODE,
    UNSURE_CODE,
    NO_ACT_CODE,
    ACT_IN_OTHER_CODE,
    SECOND_READING_CODE,
    PAGES_MISSING_CODE,
    PAGES_ORDER_CODE,
    PAGES_REPEATED_CODE,
}

#: Largest allowed distance of a type's overall share from its page-weighted share of the segments, inclusive.
MIXTURE_TOLERANCE = Decimal("0.05")
#: Distance from the largest overall share up to which a type is tied with it, inclusive.
TIE_TOLERANCE = Decimal("0.01")


class V2ConsistencyChecker(ShippedVerifier):
    """Verifier V2: checks consistency, boundaries, page order, patients and types."""

    agent = "V2"
    prompt_name = "V2_Internal_Consistency_Checker"
    find_in_text = staticmethod(find_contradicted_types)

    def __init__(
        self,
        patient_expectation: PatientExpectation = ANY_PATIENT,
        second_reader: EmbeddedModelWeights | None = None,
        min_confidence: float = MIN_CONFIDENCE,
    ) -> None:
        """Set the expected patients, the second reader and the minimum confidence.

        ``second_reader``: weights of the second reading; None for answers of the built-in model, which would only be read by
        itself. ``min_confidence``: confidence in a PRIMARY type below which V2-UNSURE is raised.
        """
        self._patient_expectation = patient_expectation
        self._second_reader = second_reader
        self._min_confidence = min_confidence

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """Return the issues of V2's rules, numbered from V2-0001."""
        stated_doubts = get_stated_beginning_probabilities(classification.self_evaluation)
        issues = [
            *find_consistency_issues(classification, bundle.total_pages, self._min_confidence),
            *_check_doubted_boundaries(classification, bundle),
            *(issue for issue in find_boundary_issues(classification, bundle) if issue.page not in stated_doubts),
            *find_page_order_issues(classification, bundle),
            *find_patient_issues(classification, bundle, self._patient_expectation),
            *find_act_issues(classification, bundle),
        ]
        if self._second_reader:
            issues += find_second_reading_issues(classification, bundle, self._second_reader)
        return number_issues("V2", issues)


def find_share_sum_issues(answer: ClassificationOutput) -> Iterator[Issue]:
    """Raise issues about segments or mixtures whose shares do not sum to 1."""
    for segment in answer.segments:
        yield from _check_share_sum(answer, segment.segment_composition, segment)
    yield from _check_share_sum(answer, answer.document_mixture, None)


def find_consistency_issues(
    answer: ClassificationOutput, total_pages: int, min_confidence: float = MIN_CONFIDENCE
) -> Iterator[Issue]:
    """Raise issues about page ranges, types and shares, without reading any text."""
    yield from find_share_sum_issues(answer)
    for segment in answer.segments:
        yield from _check_segment_dominant_type(segment)
        yield from _check_certainty(segment, min_confidence)
    yield from _check_overlaps(answer.segments)
    yield from _check_gaps(answer.segments, total_pages)
    yield from _check_overall_dominant_type(answer)
    yield from _check_mixture(answer)
    yield from _check_presence_levels(answer)


def _get_share(entry: TypePresence | MixtureEntry) -> float:
    return entry.segment_share if isinstance(entry, TypePresence) else entry.overall_share


def _check_share_sum(
    answer: ClassificationOutput, entries: Sequence[TypePresence | MixtureEntry], segment: Segment | None
) -> Iterator[Issue]:
    segment_index = segment.segment_index if segment else None
    shares = [_get_share(entry) for entry in entries]
    if has_unit_sum(shares):
        return
    code = "V2-MIXTURE-SHARE-SUM" if segment_index is None else "V2-SEGMENT-SHARE-SUM"
    subject = "Mixture overall_share values" if segment_index is None else f"Segment {segment_index} shares"
    is_fixable = is_repairable(code, answer, segment_index)
    share_sum = sum(convert_to_decimals(shares))
    yield Issue.create(
        "V2",
        code,
        MAJOR,
        f"{subject} sum to {share_sum:.3f} instead of 1.0",
        location=MIXTURE_LOCATION if segment_index is None else f"segment {segment_index}",
        suggested_fix="Divide each share by their sum" if is_fixable else "Estimate the shares again",
        auto_fixable=is_fixable,
        segment_index=segment_index,
        facts=describe_scope(segment) | {"percent": f"{100 * share_sum:.4g}"},
    )


def _check_segment_dominant_type(segment: Segment) -> Iterator[Issue]:
    location = f"segment {segment.segment_index}"
    if segment.dominant_type is None:
        yield _build_cannot_tell_issue(
            f"The classifier cannot tell what segment {segment.segment_index} is", location, segment
        )
        return
    share_by_type = {presence.document_type: presence.segment_share for presence in segment.segment_composition}
    largest_share = max(share_by_type.values(), default=0.0)
    if share_by_type.get(segment.dominant_type, 0.0) < largest_share:
        other_types = " or ".join(kind.value for kind, share in share_by_type.items() if share == largest_share)
        yield Issue.create(
            "V2",
            "V2-DOMINANT-SEGMENT",
            MAJOR,
            f"Segment {segment.segment_index} is called {segment.dominant_type.value}, "
            f"but its largest share is {other_types} ({largest_share:g})",
            location=f"{location} → dominant_type",
            suggested_fix=f"Decide between {segment.dominant_type.value} and {other_types}",
            segment_index=segment.segment_index,
            document_type=segment.dominant_type.value,
            facts={"pages": segment.page_range_text, "others": other_types, "percent": to_percent(largest_share)},
        )
        return
    level_by_type = {presence.document_type: presence.presence_level for presence in segment.segment_composition}
    yield from _check_stated_type_is_primary(segment.dominant_type, level_by_type, segment)


def _check_certainty(segment: Segment, min_confidence: float) -> Iterator[Issue]:
    for presence in segment.segment_composition:
        is_dominant = presence.document_type is segment.dominant_type
        if is_dominant and presence.presence_level is PresenceLevel.PRIMARY and presence.confidence < min_confidence:
            yield Issue.create(
                "V2",
                UNSURE_CODE,
                MAJOR,
                f"Segment {segment.segment_index} is called {presence.document_type.value} with a confidence of only {presence.confidence:g}",
                location=f"segment {segment.segment_index} → {presence.document_type.value}",
                suggested_fix="Look at the pages and choose the type",
                segment_index=segment.segment_index,
                document_type=presence.document_type.value,
                page=segment.start_page,
                facts={"pages": segment.page_range_text, "percent": to_percent(presence.confidence)},
            )


def _build_cannot_tell_issue(message: str, location: str, segment: Segment | None = None) -> Issue:
    return Issue.create(
        "V2",
        "V2-CANNOT-TELL",
        MAJOR,
        message,
        location=f"{location} → dominant_type" if segment else location,
        suggested_fix="Look at the pages and choose the type",
        segment_index=segment.segment_index if segment else None,
        facts=describe_scope(segment),
    )


def _sort_nonempty_by_page(segments: Sequence[Segment]) -> list[Segment]:
    valid_segments = [segment for segment in segments if segment.start_page <= segment.end_page]
    return sorted(valid_segments, key=lambda segment: (segment.start_page, segment.end_page))


def _check_overlaps(segments: Sequence[Segment]) -> Iterator[Issue]:
    furthest: Segment | None = None
    for segment in _sort_nonempty_by_page(segments):
        if furthest and segment.start_page <= furthest.end_page:
            pages = format_page_range(segment.start_page, min(segment.end_page, furthest.end_page))
            yield Issue.create(
                "V2",
                "V2-PAGE-OVERLAP",
                BLOCKER,
                f"Segments {furthest.segment_index} and {segment.segment_index} both claim {pages}",
                location=f"segment {segment.segment_index}",
                suggested_fix="Give each page to exactly one segment",
                segment_index=segment.segment_index,
                page=segment.start_page,
                facts={"pages": pages},
            )
        if furthest is None or segment.end_page > furthest.end_page:
            furthest = segment


def _check_gaps(segments: Sequence[Segment], total_pages: int) -> Iterator[Issue]:
    next_page = 1
    for start, end in [
        *((segment.start_page, segment.end_page) for segment in _sort_nonempty_by_page(segments)),
        (total_pages + 1,) * 2,
    ]:
        last_missing = min(start - 1, total_pages)
        if next_page <= last_missing:
            pages = format_page_range(next_page, last_missing)
            yield Issue.create(
                "V2",
                "V2-PAGE-GAP",
                BLOCKER,
                f"No segment covers {pages}",
                location="segments",
                suggested_fix="Give each page to exactly one segment",
                page=next_page,
                facts={"pages": pages},
            )
        next_page = max(next_page, end + 1)


def _check_overall_dominant_type(answer: ClassificationOutput) -> Iterator[Issue]:
    stated_type = answer.dominant_type_overall
    if stated_type is None:
        yield _build_cannot_tell_issue(
            "The classifier cannot tell what the document mainly is", "dominant_type_overall"
        )
        return
    share_by_type = {
        entry.document_type: convert_to_decimals([entry.overall_share])[0] for entry in answer.document_mixture
    }
    largest_share = max(share_by_type.values(), default=Decimal(0))
    near_types = find_types_tied_for_largest(answer.document_mixture)
    winner = choose_tie_winner(near_types, answer.segments) if near_types else None
    if stated_type is not winner:
        yield Issue.create(
            "V2",
            "V2-DOMINANT-OVERALL",
            MAJOR,
            f"The document is called {stated_type.value}, but its largest overall share is "
            f"{winner.value if winner else 'nothing'} ({largest_share:g})",
            location="dominant_type_overall",
            suggested_fix=f"Decide between {stated_type.value} and {winner.value}" if winner else "Choose the type",
            document_type=stated_type.value,
            facts={"scope": "file"}
            | ({"others": winner.value, "percent": to_percent(largest_share)} if winner else {"shares": "none"}),
        )
        return
    if len(near_types) > 1:
        tied_names = " and ".join(kind.value for kind in near_types)
        yield Issue.create(
            "V2",
            "V2-DOMINANT-TIE",
            MINOR,
            f"{tied_names} have equal overall shares",
            location="dominant_type_overall",
            document_type=stated_type.value,
            facts={"types": tied_names},
        )
    if answer.segments:
        level_by_type = {entry.document_type: entry.presence_level for entry in answer.document_mixture}
        yield from _check_stated_type_is_primary(stated_type, level_by_type, None)


def find_types_tied_for_largest(entries: Sequence[TypePresence | MixtureEntry]) -> list[DocumentType]:
    """Return the types whose share is largest, within ``TIE_TOLERANCE``."""
    shares = convert_to_decimals(map(_get_share, entries))
    largest_share = max(shares, default=Decimal(0))
    return [
        entry.document_type
        for entry, share in zip(entries, shares, strict=True)
        if largest_share - share <= TIE_TOLERANCE
    ]


def choose_tie_winner(tied_types: Sequence[DocumentType], segments: Sequence[Segment]) -> DocumentType:
    """Choose the dominant type among tied types (contract, ruling 12).

    The type with more pages wins; then any type before Other; then the type whose segment comes first, or which is first
    in ``tied_types`` if none has a segment.
    """
    pages_by_type: Counter[DocumentType | None] = Counter()
    first_page_by_type: dict[DocumentType | None, int] = {}
    for segment in _sort_nonempty_by_page(segments):
        pages_by_type[segment.dominant_type] += segment.end_page - segment.start_page + 1
        first_page_by_type.setdefault(segment.dominant_type, -segment.start_page)
    last_rank = min(first_page_by_type.values(), default=0) - 1
    return max(
        tied_types,
        key=lambda kind: (pages_by_type[kind], kind is not DocumentType.OTHER, first_page_by_type.get(kind, last_rank)),
    )


def choose_overall_type(segments: Sequence[Segment], mixture: Sequence[MixtureEntry]) -> DocumentType | None:
    """Return the type with the largest share of the file.

    None if no type has more pages than the segments of unknown type, or if there is no mixture.
    """
    pages_by_type = dict.fromkeys((*DocumentType, None), 0)
    for segment in segments:
        pages_by_type[segment.dominant_type] += segment.segment_page_count
    if not mixture or pages_by_type[None] >= max(pages_by_type[kind] for kind in DocumentType):
        return None
    return choose_tie_winner(find_types_tied_for_largest(mixture), segments)


def _check_mixture(answer: ClassificationOutput) -> Iterator[Issue]:
    """Raise V2-MIXTURE if an overall share differs from the page-weighted share.

    Both are divided by their sums first, because wrong sums are raised by ``find_share_sum_issues``.
    """
    stated_shares = _compute_page_weighted_shares([(1, answer.document_mixture)])
    weighted_shares = _compute_page_weighted_shares(
        [(segment.end_page - segment.start_page + 1, segment.segment_composition) for segment in answer.segments]
    )
    if stated_shares is None or weighted_shares is None:
        return
    wrong_types = [
        kind for kind in DocumentType if abs(stated_shares[kind] - weighted_shares[kind]) > MIXTURE_TOLERANCE
    ]
    if wrong_types:
        worst_type = max(wrong_types, key=lambda kind: abs(stated_shares[kind] - weighted_shares[kind]))
        yield Issue.create(
            "V2",
            "V2-MIXTURE",
            MAJOR,
            f"The mixture gives {worst_type.value} {stated_shares[worst_type]:.2f}, but the segments' pages give {weighted_shares[worst_type]:.2f}",
            location=f"{MIXTURE_LOCATION} → {worst_type.value}",
            suggested_fix="Weigh the segments' shares by their pages",
            document_type=worst_type.value,
            facts={
                "percent": to_percent(stated_shares[worst_type]),
                "pages_percent": to_percent(weighted_shares[worst_type]),
            },
        )


def _check_presence_levels(answer: ClassificationOutput) -> Iterator[Issue]:
    level_by_type = {entry.document_type: entry.presence_level for entry in answer.document_mixture}
    for kind, level in level_by_type.items():
        segment_levels = [
            presence.presence_level
            for segment in answer.segments
            for presence in segment.segment_composition
            if presence.document_type is kind
        ]
        is_denied = level is PresenceLevel.NO_EVIDENCE and PresenceLevel.PRIMARY in segment_levels
        is_unfounded = level is PresenceLevel.PRIMARY and set(segment_levels) <= {PresenceLevel.NO_EVIDENCE}
        if answer.segments and (is_denied or is_unfounded):
            yield Issue.create(
                "V2",
                "V2-MIXTURE-PRESENCE",
                MAJOR,
                f"The mixture calls {kind.value} {level.value}, but "
                + ("a segment calls it PRIMARY" if is_denied else "no segment has any of it"),
                location=f"{MIXTURE_LOCATION} → {kind.value}",
                suggested_fix="Decide whether the mixture or the segments are right",
                document_type=kind.value,
                facts={"conflict": "denied" if is_denied else "unfounded"},
            )


def _check_doubted_boundaries(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    """Raise the boundaries that the classifier doubts, unless signs settle them."""
    first_pages = {segment.start_page for segment in answer.segments}
    for page, probability in sorted(get_stated_beginning_probabilities(answer.self_evaluation).items()):
        if not 1 <= page <= bundle.total_pages:
            continue
        weight = weigh_boundary(answer, bundle, page)
        is_settled = weight >= BEGINNING_THRESHOLD if page in first_pages else weight < UNSUPPORTED_THRESHOLD
        if is_settled:
            continue
        has_probability = isinstance(probability, int | float) and 0 <= probability <= 1
        yield Issue.create(
            "V2",
            BOUNDARY_DOUBT_CODE,
            MAJOR,
            f"The classifier itself is unsure whether a document begins on page {page}"
            + (f" ({probability:.0%})" if has_probability else ""),
            location="segments",
            suggested_fix=f"Check whether page {page} continues the page before",
            segment_index=next(
                (
                    segment.segment_index
                    for segment in answer.segments
                    if segment.start_page <= page <= segment.end_page
                ),
                None,
            ),
            page=page,
            facts={"doubt": "stated" if page in first_pages else "stated against"}
            | ({"percent": to_percent(probability)} if has_probability else {}),
        )


def get_stated_beginning_probabilities(self_evaluation: Any) -> dict[int, Any]:
    """Return the pages that a model doubts as boundaries, with probabilities.

    In the shape of ``DOUBTS_KEY``; rows of another shape are left out. A probability may have any type.
    """
    doubts = self_evaluation.get(DOUBTS_KEY) if isinstance(self_evaluation, dict) else None
    doubt_rows = [doubt_row for doubt_row in doubts if isinstance(doubt_row, dict)] if isinstance(doubts, list) else []
    return {
        doubt_row["page"]: doubt_row.get("begins") for doubt_row in doubt_rows if type(doubt_row.get("page")) is int
    }


def _check_stated_type_is_primary(
    stated_type: DocumentType, level_by_type: Mapping[DocumentType, PresenceLevel], segment: Segment | None
) -> Iterator[Issue]:
    level = level_by_type.get(stated_type)
    is_primary = level in (None, PresenceLevel.PRIMARY)
    # a file has several types of level PRIMARY, but a segment is one document: what its shares do not settle, nobody did
    rival_names = " and ".join(
        kind.value
        for kind in (find_types_tied_for_largest(segment.segment_composition) if segment and is_primary else ())
        if kind is not stated_type and level_by_type[kind] is PresenceLevel.PRIMARY
    )
    if is_primary and not rival_names:
        return
    segment_index = segment.segment_index if segment else None
    subject = "The document" if segment_index is None else f"Segment {segment_index}"
    yield Issue.create(
        "V2",
        "V2-DOMINANT-PRESENCE",
        MAJOR,
        f"{subject} is called {stated_type.value}, "
        + (f"but {rival_names} is PRIMARY in it too" if rival_names else f"which is only {level} in it"),
        location="dominant_type_overall" if segment_index is None else f"segment {segment_index} → dominant_type",
        suggested_fix="Decide whether this type is right",
        segment_index=segment_index,
        document_type=stated_type.value,
        facts=describe_scope(segment) | ({"others": rival_names} if rival_names else {}),
    )


def _compute_page_weighted_shares(
    page_counts_and_entries: Sequence[tuple[int, Sequence[TypePresence | MixtureEntry]]],
) -> dict[DocumentType, Decimal] | None:
    """Compute each type's share of all entries, weighted by pages.

    None if a weight is below 1, a share is negative or a sum is 0.
    """
    totals = dict.fromkeys(DocumentType, Decimal(0))
    page_total = 0
    for weight, entries in page_counts_and_entries:
        shares = convert_to_decimals(_get_share(entry) for entry in entries)
        if weight < 1 or sum(shares) <= 0 or any(share < 0 for share in shares):
            return None
        page_total += weight
        for entry, share in zip(entries, shares, strict=True):
            totals[entry.document_type] += weight * share / sum(shares)
    return {kind: total / page_total for kind, total in totals.items()} if page_total else None
