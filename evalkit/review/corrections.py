"""Validation and correction of a classification by the rules of V1 and V2.

Pure functions. Source: contract, rulings 8, 12, 13 and 14: the parts that an expert vouches for must pass the rules of V1
and V2; a correction of only the overall type is never refused; missing shares are computed from the pages.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from evalkit.classification.autofix import AutoFixEngine, Repair, find_missing_types
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    MixtureEntry,
    PresenceLevel,
    ReviewedPresence,
    Segment,
    TypePresence,
    convert_to_decimals,
    normalise_shares,
)
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import (
    EXPERT_QUESTION_CODES,
    TIE_TOLERANCE,
    choose_tie_winner,
    find_consistency_issues,
)
from evalkit.core.records import DiscreetModel, describe_first_error
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused
from evalkit.issue import Issue, IssueSeverity

ClassificationPart = Literal["dominant_type", "segments", "mixture"]
CLASSIFICATION_PARTS: tuple[ClassificationPart, ...] = ("dominant_type", "segments", "mixture")

_TYPE_ONLY: frozenset[ClassificationPart] = frozenset({"dominant_type"})
_SEGMENTS_ONLY: frozenset[ClassificationPart] = frozenset({"segments"})
_MIXTURE_ONLY: frozenset[ClassificationPart] = frozenset({"mixture"})

#: By issue code, the sets of parts that the issue concerns: an issue counts if the expert vouches for all parts of one of
#: the sets. An issue with any other code concerns the segments if it names a segment, and the mixture if it names none.
_CONCERNED_PARTS_BY_CODE: dict[str, tuple[frozenset[ClassificationPart], ...]] = {
    "V1-SEGMENT-COUNT": (_SEGMENTS_ONLY,),
    "V1-SEGMENT-INDEX": (_SEGMENTS_ONLY,),
    "V1-PAGE-RANGE": (_SEGMENTS_ONLY,),
    "V1-PAGE-COUNT": (_SEGMENTS_ONLY,),
    "V2-PAGE-OVERLAP": (_SEGMENTS_ONLY,),
    "V2-PAGE-GAP": (_SEGMENTS_ONLY,),
    **dict.fromkeys(EXPERT_QUESTION_CODES, ()),
    "V2-DOMINANT-SEGMENT": (_SEGMENTS_ONLY,),
    "V2-DOMINANT-OVERALL": (_TYPE_ONLY | _SEGMENTS_ONLY, _TYPE_ONLY | _MIXTURE_ONLY),
    "V2-MIXTURE": (_MIXTURE_ONLY,),
}


class _CorrectionInput(DiscreetModel):
    # Unknown fields are refused: ignoring a misspelt field would silently lose a correction.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _PresenceInput(_CorrectionInput):
    document_type: DocumentType
    presence_level: PresenceLevel
    segment_share: float
    confidence: float | None = None
    top_evidence: tuple[Evidence, ...] = ()


class _SegmentInput(_CorrectionInput):
    start_page: int
    end_page: int
    dominant_type: DocumentType
    segment_composition: tuple[_PresenceInput, ...] | None = None
    reasoning: str = ""
    segment_index: int | None = None
    """Accepted so that segments can be copied from a packet, but ignored: segments are numbered anew."""
    segment_page_count: int | None = None
    """Likewise."""


class _MixtureInput(_CorrectionInput):
    document_type: DocumentType
    overall_share: float
    presence_level: PresenceLevel | None = None
    confidence: float | None = None


def repair_validated_classification(
    classification: ClassificationOutput | None,
    issues: Iterable[Issue],
    bundle: DocumentBundle,
    vouched_parts: Iterable[ClassificationPart],
) -> tuple[ClassificationOutput, list[Repair]]:
    """Apply the automatic repairs of open issues to the agent's classification.

    Return the repaired classification and the repairs. ReviewRefused if there is no classification, or if a part that the
    expert vouches for still breaks a rule of V1 or V2; the error names each violation.
    """
    if classification is None:
        raise ReviewRefused(
            "the agent gave no usable classification, so there is nothing to validate",
            code="REVIEW-NOTHING-TO-VALIDATE",
            remedy="Give corrected_dominant_type or corrected_segments, or undeterminable='the reason'.",
        )
    repaired, repairs = AutoFixEngine().apply(classification, issues)
    _require_valid_parts(repaired, bundle, vouched_parts)
    return repaired, repairs


def correct_overall_type(
    classification: ClassificationOutput | None, dominant_type: DocumentType, bundle: DocumentBundle
) -> ClassificationOutput:
    """Replace the overall type of a classification; never refused.

    If the classification has several segments, they and the mixture stay as they are. Otherwise the result has one segment
    of the new type that covers all pages.
    """
    if classification is not None and len(classification.segments) > 1:
        return classification.model_copy(update={"dominant_type_overall": dominant_type})
    composition = _compose_segment(classification, 1, bundle.total_pages, dominant_type, keeps_shares=False)
    segments = (_build_segment(1, 1, bundle.total_pages, dominant_type, composition),)
    return _build_classification(classification, dominant_type, segments, compute_page_weighted_mixture(segments))


def correct_classification(
    classification: ClassificationOutput | None,
    bundle: DocumentBundle,
    *,
    dominant_type: str | None = None,
    segments: Sequence[Any] | None = None,
    mixture: Sequence[Any] | None = None,
    vouched_parts: Iterable[ClassificationPart] = (),
) -> ClassificationOutput:
    """Replace the overall type, the segments or the mixture of a classification.

    At least one of the three must be given. ``segments`` are dicts with ``start_page``, ``end_page``, ``dominant_type`` and
    optionally ``segment_composition`` (or tuples of the first three), in any order; ``mixture`` are dicts with
    ``document_type``, ``overall_share`` (0..1) and optionally ``presence_level``. A segment without a composition keeps the
    agent's if it has the same pages and type and no rule is broken; otherwise it is wholly of its type, with the agent's
    quotes of this type from its pages. ReviewRefused if an item has another shape, or if a part that was given or that the
    expert vouches for breaks a rule of V1 or V2.
    """
    correction_parts = (dominant_type, segments, mixture)
    try:
        return _correct_parts(classification, bundle, *correction_parts, tuple(vouched_parts), keeps_shares=True)
    except ReviewRefused:
        return _correct_parts(classification, bundle, *correction_parts, tuple(vouched_parts), keeps_shares=False)


def _correct_parts(
    classification: ClassificationOutput | None,
    bundle: DocumentBundle,
    dominant_type: str | None,
    segments: Sequence[Any] | None,
    mixture: Sequence[Any] | None,
    vouched_parts: Iterable[ClassificationPart],
    *,
    keeps_shares: bool,
) -> ClassificationOutput:
    stated_type = None if dominant_type is None else parse_document_type(dominant_type)
    if stated_type and segments is None and mixture is None:
        correction = correct_overall_type(classification, stated_type, bundle)
        _require_valid_parts(correction, bundle, vouched_parts)
        return correction
    stated_segments = None if segments is None else _parse_segments(segments, classification, keeps_shares=keeps_shares)
    stated_mixture = None if mixture is None else _parse_mixture(mixture, stated_segments or ())
    if (
        stated_segments is None
        and stated_mixture is not None
        and (classification is None or len(classification.segments) <= 1)
    ):
        # With a single segment, the mixture of the whole file is that segment's composition.
        presences = tuple(
            _build_presence(
                entry.document_type,
                entry.overall_share,
                entry.presence_level,
                entry.confidence,
                _list_agent_quotes(classification, 1, bundle.total_pages, entry.document_type),
            )
            for entry in stated_mixture
        )
        stated_segments = (
            _build_segment(
                1, 1, bundle.total_pages, stated_type or choose_dominant_type(stated_mixture, ()), presences
            ),
        )
    if stated_segments is not None:
        # Checked first, because shares by pages can only be computed from valid segments.
        _require_valid_parts(
            _build_classification(classification, stated_type or DocumentType.OTHER, stated_segments, ()),
            bundle,
            _SEGMENTS_ONLY,
        )
    agent_segments = classification.segments if classification is not None else ()
    final_segments = agent_segments if stated_segments is None else stated_segments
    final_mixture = compute_page_weighted_mixture(final_segments) if stated_mixture is None else stated_mixture
    final_type = stated_type or choose_dominant_type(final_mixture, final_segments)
    correction = _build_classification(classification, final_type, final_segments, final_mixture)
    _require_valid_parts(correction, bundle, {*vouched_parts, *list_corrected_parts(dominant_type, segments, mixture)})
    return correction


def list_corrected_parts(dominant_type: object, segments: object, mixture: object) -> tuple[ClassificationPart, ...]:
    """List the names of the arguments that are not None, i.e. the corrected parts."""
    values = zip(CLASSIFICATION_PARTS, (dominant_type, segments, mixture), strict=True)
    return tuple(part for part, value in values if value is not None)


def parse_document_type(name: str) -> DocumentType:
    """Parse the name of a document type. ReviewRefused unless it is one of the five."""
    if name not in tuple(DocumentType):
        raise ReviewRefused(
            f"'{name:s}' is not a document type",
            code="REVIEW-TYPE",
            remedy=f"The types are {', '.join(DocumentType)}.",
        )
    return DocumentType(name)


def choose_dominant_type(mixture: Sequence[MixtureEntry], segments: Sequence[Segment]) -> DocumentType:
    """Choose the type with the largest overall share, with V2's rule for near-ties."""
    shares = convert_to_decimals(mixture_entry.overall_share for mixture_entry in mixture)
    nearly_largest = [
        mixture_entry.document_type
        for mixture_entry, share in zip(mixture, shares, strict=True)
        if max(shares) - share <= TIE_TOLERANCE
    ]
    return choose_tie_winner(nearly_largest, segments)


def compute_page_weighted_mixture(segments: Sequence[Segment]) -> tuple[MixtureEntry, ...]:
    """Compute each type's overall share from the segments, weighted by pages.

    The segments must pass V1 and V2. The shares sum to exactly 1.
    """
    weights = dict.fromkeys(DocumentType, Decimal(0))
    for segment in segments:
        shares = convert_to_decimals(presence.segment_share for presence in segment.segment_composition)
        for presence, share in zip(segment.segment_composition, shares, strict=True):
            weights[presence.document_type] += share * segment.segment_page_count
    levels = _find_strongest_levels(segments)
    return tuple(
        _build_mixture_entry(document_type, share, levels[document_type])
        for document_type, share in zip(
            weights, normalise_shares(float(weight) for weight in weights.values()), strict=True
        )
    )


def find_rule_violations(
    classification: ClassificationOutput, bundle: DocumentBundle, vouched_parts: Iterable[ClassificationPart]
) -> list[Issue]:
    """List the serious issues of V1 and V2 that concern the confirmed parts."""
    vouched_set = frozenset(vouched_parts)
    issues = [
        *V1SchemaValidator().validate(classification, bundle),
        *find_consistency_issues(
            classification, bundle.total_pages
        ),  # what the pages ask, the expert answers (ruling 37)
    ]
    return [
        issue
        for issue in issues
        if issue.severity is not IssueSeverity.MINOR
        and any(parts <= vouched_set for parts in _list_concerned_part_sets(issue))
    ]


def _list_concerned_part_sets(issue: Issue) -> tuple[frozenset[ClassificationPart], ...]:
    default_parts = _MIXTURE_ONLY if issue.segment_index is None else _SEGMENTS_ONLY
    if issue.code == "V2-CANNOT-TELL" and issue.segment_index is None:
        return (frozenset(),)  # counts whatever is vouched for: ground truth must not be "cannot tell"
    return _CONCERNED_PARTS_BY_CODE.get(issue.code, (default_parts,))


def _require_valid_parts(
    classification: ClassificationOutput, bundle: DocumentBundle, vouched_parts: Iterable[ClassificationPart]
) -> None:
    if violations := find_rule_violations(classification, bundle, vouched_parts):
        raise ReviewRefused(
            "; ".join(f"{issue.code}: {issue.message}" for issue in violations),
            code="REVIEW-RULES",
            remedy="Correct what the message names, or correct only the overall type.",
        )


def _parse_segments(
    raw_segments: Sequence[Any], agent_answer: ClassificationOutput | None, *, keeps_shares: bool
) -> tuple[Segment, ...]:
    field_names = ("start_page", "end_page", "dominant_type", "segment_composition")
    segment_inputs = [
        _parse_input(_SegmentInput, raw_segment, field_names, f"corrected_segments[{position}]")
        for position, raw_segment in enumerate(raw_segments)
    ]
    segment_inputs.sort(key=lambda segment: (segment.start_page, segment.end_page))
    return tuple(
        _build_segment(
            index,
            segment_input.start_page,
            segment_input.end_page,
            segment_input.dominant_type,
            _compose_segment(
                agent_answer,
                segment_input.start_page,
                segment_input.end_page,
                segment_input.dominant_type,
                keeps_shares=keeps_shares,
            )
            if segment_input.segment_composition is None
            else _complete_composition(segment_input.segment_composition),
            segment_input.reasoning,
        )
        for index, segment_input in enumerate(segment_inputs, 1)
    )


def _parse_mixture(raw_mixture: Sequence[Any], segments: Sequence[Segment]) -> tuple[MixtureEntry, ...]:
    field_names = ("document_type", "overall_share", "presence_level")
    mixture_inputs = [
        _parse_input(_MixtureInput, raw_share, field_names, f"corrected_mixture[{position}]")
        for position, raw_share in enumerate(raw_mixture)
    ]
    levels = _find_strongest_levels(segments) if segments else dict.fromkeys(DocumentType, PresenceLevel.PRIMARY)
    stated_entries = (
        _build_mixture_entry(
            mixture_input.document_type,
            mixture_input.overall_share,
            mixture_input.presence_level
            or (levels[mixture_input.document_type] if mixture_input.overall_share else PresenceLevel.NO_EVIDENCE),
            mixture_input.confidence,
        )
        for mixture_input in mixture_inputs
    )
    absent_types = find_missing_types(mixture_input.document_type for mixture_input in mixture_inputs)
    return (
        *stated_entries,
        *(_build_mixture_entry(document_type, 0.0, PresenceLevel.NO_EVIDENCE) for document_type in absent_types),
    )


_Input = TypeVar("_Input", bound=_CorrectionInput)


def _parse_input(input_type: type[_Input], raw_input: Any, field_names: Sequence[str], location: str) -> _Input:
    if isinstance(raw_input, BaseModel):
        input_fields: Any = raw_input.model_dump()
    else:
        input_fields = (
            dict(zip(field_names, raw_input, strict=False)) if isinstance(raw_input, (tuple, list)) else raw_input
        )
    try:
        return input_type.model_validate(input_fields)
    except ValidationError as error:
        raise ReviewRefused(
            describe_first_error(error, location),
            code="REVIEW-SHAPE",
            remedy=f"Each item is a dict with {', '.join(field_names)}.",
        ) from None


def _build_segment(
    index: int,
    start_page: int,
    end_page: int,
    document_type: DocumentType,
    composition: tuple[TypePresence, ...],
    reasoning: str = "",
) -> Segment:
    return Segment(
        segment_index=index,
        start_page=start_page,
        end_page=end_page,
        segment_page_count=end_page - start_page + 1,
        dominant_type=document_type,
        reasoning=reasoning,
        segment_composition=composition,
    )


def _compose_segment(
    agent_answer: ClassificationOutput | None,
    start_page: int,
    end_page: int,
    document_type: DocumentType,
    *,
    keeps_shares: bool,
) -> tuple[TypePresence, ...]:
    """Compose a segment of which the expert gave pages and type only."""
    for segment in agent_answer.segments if agent_answer and keeps_shares else ():
        if (segment.start_page, segment.end_page, segment.dominant_type) == (start_page, end_page, document_type):
            return segment.segment_composition
    quotes = _list_agent_quotes(agent_answer, start_page, end_page, document_type)
    primary = _build_presence(document_type, 1.0, PresenceLevel.PRIMARY, evidence=quotes)
    return tuple(
        ReviewedPresence(**dict(primary), share_vouched=False)
        if listed_type is document_type
        else _build_presence(listed_type, 0.0, PresenceLevel.NO_EVIDENCE)
        for listed_type in DocumentType
    )


def _list_agent_quotes(
    agent_answer: ClassificationOutput | None, start_page: int, end_page: int, document_type: DocumentType
) -> tuple[Evidence, ...]:
    """List the agent's quotes for a type from a page range, without duplicates."""
    quotes = (
        evidence
        for segment in (agent_answer.segments if agent_answer else ())
        for presence in segment.segment_composition
        for evidence in presence.top_evidence
        if presence.document_type is document_type and start_page <= evidence.page <= end_page
    )
    return tuple(dict.fromkeys(quotes))


def _complete_composition(presence_inputs: Sequence[_PresenceInput]) -> tuple[TypePresence, ...]:
    stated_presences = (
        _build_presence(
            presence_input.document_type,
            presence_input.segment_share,
            presence_input.presence_level,
            presence_input.confidence,
            presence_input.top_evidence,
        )
        for presence_input in presence_inputs
    )
    absent_types = find_missing_types(presence_input.document_type for presence_input in presence_inputs)
    return (
        *stated_presences,
        *(_build_presence(document_type, 0.0, PresenceLevel.NO_EVIDENCE) for document_type in absent_types),
    )


def _build_presence(
    document_type: DocumentType,
    share: float,
    level: PresenceLevel,
    confidence: float | None = None,
    evidence: tuple[Evidence, ...] = (),
) -> TypePresence:
    return TypePresence(
        document_type=document_type,
        presence_level=level,
        confidence=_get_default_confidence(level) if confidence is None else confidence,
        segment_share=share,
        top_evidence=evidence,
    )


def _build_mixture_entry(
    document_type: DocumentType, share: float, level: PresenceLevel, confidence: float | None = None
) -> MixtureEntry:
    return MixtureEntry(
        document_type=document_type,
        presence_level=level,
        confidence=_get_default_confidence(level) if confidence is None else confidence,
        overall_share=share,
    )


def _get_default_confidence(level: PresenceLevel) -> float:
    # Experts are not asked for a confidence: a type that they state gets 1.
    return 0.0 if level is PresenceLevel.NO_EVIDENCE else 1.0


def _find_strongest_levels(segments: Sequence[Segment]) -> Mapping[DocumentType, PresenceLevel]:
    strength_order = list(PresenceLevel)
    levels = dict.fromkeys(DocumentType, PresenceLevel.NO_EVIDENCE)
    for segment in segments:
        for presence in segment.segment_composition:
            document_type, level = presence.document_type, presence.presence_level
            levels[document_type] = min(levels[document_type], level, key=strength_order.index)
    return levels


def _build_classification(
    agent_answer: ClassificationOutput | None,
    overall_type: DocumentType | None,
    segments: tuple[Segment, ...],
    mixture: tuple[MixtureEntry, ...],
) -> ClassificationOutput:
    return ClassificationOutput(
        dominant_type_overall=overall_type,
        number_of_segments=len(segments),
        segments=segments,
        document_mixture=mixture,
        vendor_signals=agent_answer.vendor_signals if agent_answer else (),
        # The agent's evaluation of its own answer does not apply to the expert's answer.
        self_evaluation=None,
    )
