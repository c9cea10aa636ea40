"""What a classification becomes when an expert validates or corrects it, and when the rules forbid that.

Pure functions. Source: contract, rulings 8, 12, 13 and 14: what an expert stands for passes V1's and V2's rules; a
correction of the type alone is never refused; what was not said about shares is filled in by arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from evalkit.classification.autofix import AutoFixEngine, Repair, missing_types
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
    exact,
    normalised,
)
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import TIE, V2ConsistencyChecker, tie_winner
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused
from evalkit.issue import Issue, IssueSeverity

Part = Literal["dominant_type", "segments", "mixture"]
PARTS: tuple[Part, ...] = ("dominant_type", "segments", "mixture")

_TYPE: frozenset[Part] = frozenset({"dominant_type"})
_SEGMENTS: frozenset[Part] = frozenset({"segments"})
_MIXTURE: frozenset[Part] = frozenset({"mixture"})
_ANYWAY: frozenset[Part] = frozenset()

#: Of which parts a fault is a fault: it counts as soon as all parts of one of the sets are vouched for. Codes that are
#: not named are about the shares of the segment that the issue names, or of the mixture if it names none.
_CONCERNS: dict[str, tuple[frozenset[Part], ...]] = {
    "V1-SEGMENT-COUNT": (_SEGMENTS,),
    "V1-SEGMENT-INDEX": (_SEGMENTS,),
    "V1-PAGE-RANGE": (_SEGMENTS,),
    "V1-PAGE-COUNT": (_SEGMENTS,),
    "V2-PAGE-OVERLAP": (_SEGMENTS,),
    "V2-PAGE-GAP": (_SEGMENTS,),
    "V2-BOUNDARY-DOUBT": (),  # a question to the expert, whose agreement is the answer
    "V2-DOMINANT-SEGMENT": (_SEGMENTS,),
    "V2-DOMINANT-OVERALL": (_TYPE | _SEGMENTS, _TYPE | _MIXTURE),
    "V2-MIXTURE": (_MIXTURE,),
}


class _Given(BaseModel):
    # A misspelt field that is silently dropped would be a correction that was never made.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _GivenPresence(_Given):
    document_type: DocumentType
    presence_level: PresenceLevel
    segment_share: float
    confidence: float | None = None
    top_evidence: tuple[Evidence, ...] = ()


class _GivenSegment(_Given):
    start_page: int
    end_page: int
    dominant_type: DocumentType
    segment_composition: tuple[_GivenPresence, ...] | None = None
    reasoning: str = ""
    segment_index: int | None = None
    """Taken so that a packet's own segments can be handed back; counted anew."""
    segment_page_count: int | None = None
    """Likewise."""


class _GivenEntry(_Given):
    document_type: DocumentType
    overall_share: float
    presence_level: PresenceLevel | None = None
    confidence: float | None = None


def validated(
    classification: ClassificationOutput | None,
    issues: Iterable[Issue],
    bundle: DocumentBundle,
    vouched: Iterable[Part],
) -> tuple[ClassificationOutput, list[Repair]]:
    """The agent's classification with the open issues' repairs, and these repairs.

    ReviewRefused, naming each remaining fault, if a part that is vouched for breaks a rule of V1 or V2, and where
    there is nothing to agree with.
    """
    if classification is None:
        raise ReviewRefused(
            "the agent gave no usable classification, so there is nothing to agree with",
            code="REVIEW-NOTHING-TO-VALIDATE",
            remedy="Give corrected_dominant_type or corrected_segments, or say why it is undeterminable.",
        )
    repaired, repairs = AutoFixEngine().apply(classification, issues)
    _check(repaired, bundle, vouched)
    return repaired, repairs


def type_only(
    classification: ClassificationOutput | None, dominant_type: DocumentType, bundle: DocumentBundle
) -> ClassificationOutput:
    """The classification with another overall type; never refused.

    Several segments stay as they are, and so does the mixture; otherwise the whole document is one segment of the type.
    """
    if classification is not None and len(classification.segments) > 1:
        return classification.model_copy(update={"dominant_type_overall": dominant_type})
    segments = (_segment(1, 1, bundle.total_pages, dominant_type, _only(dominant_type)),)
    return _classification(classification, dominant_type, segments, page_weighted(segments))


def corrected(
    classification: ClassificationOutput | None,
    bundle: DocumentBundle,
    *,
    dominant_type: str | None = None,
    segments: Sequence[Any] | None = None,
    mixture: Sequence[Any] | None = None,
    vouched: Iterable[Part] = (),
) -> ClassificationOutput:
    """The classification as the expert corrects it; at least one of the three parts is given.

    ``segments`` are dicts with ``start_page``, ``end_page``, ``dominant_type`` (or tuples in that order) and perhaps
    ``segment_composition``, in any order; ``mixture`` are dicts with ``document_type``, ``overall_share`` and perhaps
    ``presence_level``. ReviewRefused where they have another shape, or where a part that was given or is vouched for
    breaks a rule of V1 or V2.
    """
    kind = None if dominant_type is None else document_type(dominant_type)
    if kind and segments is None and mixture is None:
        answer = type_only(classification, kind, bundle)
        _check(answer, bundle, vouched)
        return answer
    ours = None if segments is None else _given_segments(segments)
    stated = None if mixture is None else _given_mixture(mixture, ours or ())
    if ours is None and stated is not None and (classification is None or len(classification.segments) <= 1):
        # One document is as mixed as its only segment.
        presences = tuple(_as_presence(entry) for entry in stated)
        ours = (_segment(1, 1, bundle.total_pages, kind or largest(stated, ()), presences),)
    if ours is not None:
        # First, because only segments that pass have page-weighted shares.
        _check(_classification(classification, kind or DocumentType.OTHER, ours, ()), bundle, _SEGMENTS)
    kept = classification.segments if classification is not None else ()
    final_segments = kept if ours is None else ours
    final_mixture = page_weighted(final_segments) if stated is None else stated
    overall = kind or largest(final_mixture, final_segments)
    answer = _classification(classification, overall, final_segments, final_mixture)
    _check(answer, bundle, {*vouched, *given_parts(dominant_type, segments, mixture)})
    return answer


def given_parts(dominant_type: object, segments: object, mixture: object) -> tuple[Part, ...]:
    """The parts of a correction that were given (are not None)."""
    values = zip(PARTS, (dominant_type, segments, mixture), strict=True)
    return tuple(part for part, value in values if value is not None)


def document_type(value: str) -> DocumentType:
    """One of the five types. ReviewRefused for any other word."""
    try:
        return DocumentType(value)
    except ValueError as error:
        raise ReviewRefused(
            f"{value!r} is not a document type",
            code="REVIEW-TYPE",
            remedy=f"The types are {', '.join(DocumentType)}.",
        ) from error


def largest(mixture: Sequence[MixtureEntry], segments: Sequence[Segment]) -> DocumentType:
    """The type with the largest overall share; of nearly equal ones the one that V2 would choose."""
    shares = exact(entry.overall_share for entry in mixture)
    near = [entry.document_type for entry, share in zip(mixture, shares, strict=True) if max(shares) - share <= TIE]
    return tie_winner(near, segments)


def page_weighted(segments: Sequence[Segment]) -> tuple[MixtureEntry, ...]:
    """The mixture that follows from segments whose pages and shares pass V1 and V2: shares sum to exactly 1."""
    weights = dict.fromkeys(DocumentType, Decimal(0))
    for segment in segments:
        for presence, share in zip(segment.segment_composition, _shares(segment), strict=True):
            weights[presence.document_type] += share * segment.segment_page_count
    levels = _levels(segments)
    return tuple(
        _entry(kind, share, levels[kind])
        for kind, share in zip(weights, normalised(float(weight) for weight in weights.values()), strict=True)
    )


def faults(answer: ClassificationOutput, bundle: DocumentBundle, vouched: Iterable[Part]) -> list[Issue]:
    """V1's and V2's BLOCKER and MAJOR issues that concern what is vouched for."""
    stands_for = frozenset(vouched)
    found = [*V1SchemaValidator().validate(answer, bundle), *V2ConsistencyChecker().validate(answer, bundle)]
    return [
        issue
        for issue in found
        if issue.severity is not IssueSeverity.MINOR and any(parts <= stands_for for parts in _concerns(issue))
    ]


def _concerns(issue: Issue) -> tuple[frozenset[Part], ...]:
    own = _MIXTURE if issue.segment_index is None else _SEGMENTS
    if issue.code == "V2-CANNOT-TELL" and issue.segment_index is None:
        return (_ANYWAY,)  # ground truth never says that it cannot tell
    return _CONCERNS.get(issue.code, (own,))


def _check(answer: ClassificationOutput, bundle: DocumentBundle, vouched: Iterable[Part]) -> None:
    if remaining := faults(answer, bundle, vouched):
        raise ReviewRefused(
            "; ".join(f"{issue.code}: {issue.message}" for issue in remaining),
            code="REVIEW-RULES",
            remedy="Correct this, or correct the type alone.",
        )


def _given_segments(given: Sequence[Any]) -> tuple[Segment, ...]:
    names = ("start_page", "end_page", "dominant_type", "segment_composition")
    read = [_read(_GivenSegment, item, names, f"corrected_segments[{place}]") for place, item in enumerate(given)]
    read.sort(key=lambda segment: (segment.start_page, segment.end_page))
    return tuple(
        _segment(
            index,
            one.start_page,
            one.end_page,
            one.dominant_type,
            _only(one.dominant_type) if one.segment_composition is None else _completed(one.segment_composition),
            one.reasoning,
        )
        for index, one in enumerate(read, 1)
    )


def _given_mixture(given: Sequence[Any], segments: Sequence[Segment]) -> tuple[MixtureEntry, ...]:
    names = ("document_type", "overall_share", "presence_level")
    read = [_read(_GivenEntry, item, names, f"corrected_mixture[{place}]") for place, item in enumerate(given)]
    levels = _levels(segments)
    stated = []
    for one in read:
        default = levels[one.document_type] if segments else PresenceLevel.PRIMARY
        level = one.presence_level or (default if one.overall_share else PresenceLevel.NO_EVIDENCE)
        stated.append(_entry(one.document_type, one.overall_share, level, one.confidence))
    absent = missing_types(one.document_type for one in read)
    return (*stated, *(_entry(kind, 0.0, PresenceLevel.NO_EVIDENCE) for kind in absent))


_G = TypeVar("_G", bound=_Given)


def _read(model: type[_G], item: Any, names: Sequence[str], where: str) -> _G:
    if isinstance(item, BaseModel):
        value: Any = item.model_dump()
    else:
        value = dict(zip(names, item, strict=False)) if isinstance(item, (tuple, list)) else item
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join([where, *(str(step) for step in first["loc"])])
        raise ReviewRefused(
            f"{at}: {first['msg']}",
            code="REVIEW-SHAPE",
            remedy=f"Each item is a dict with {', '.join(names)}.",
        ) from None


def _segment(
    index: int,
    start: int,
    end: int,
    kind: DocumentType,
    composition: tuple[TypePresence, ...],
    reasoning: str = "",
) -> Segment:
    return Segment(
        segment_index=index,
        start_page=start,
        end_page=end,
        segment_page_count=end - start + 1,
        dominant_type=kind,
        reasoning=reasoning,
        segment_composition=composition,
    )


def _only(kind: DocumentType) -> tuple[TypePresence, ...]:
    """A composition that is all of one type."""
    return tuple(
        _presence(each, 1.0, PresenceLevel.PRIMARY) if each is kind else _presence(each, 0.0, PresenceLevel.NO_EVIDENCE)
        for each in DocumentType
    )


def _completed(given: Sequence[_GivenPresence]) -> tuple[TypePresence, ...]:
    stated = (
        _presence(one.document_type, one.segment_share, one.presence_level, one.confidence, one.top_evidence)
        for one in given
    )
    absent = missing_types(one.document_type for one in given)
    return (*stated, *(_presence(kind, 0.0, PresenceLevel.NO_EVIDENCE) for kind in absent))


def _presence(
    kind: DocumentType,
    share: float,
    level: PresenceLevel,
    confidence: float | None = None,
    evidence: tuple[Evidence, ...] = (),
) -> TypePresence:
    return TypePresence(
        document_type=kind,
        presence_level=level,
        confidence=_confidence(level) if confidence is None else confidence,
        segment_share=share,
        top_evidence=evidence,
    )


def _entry(kind: DocumentType, share: float, level: PresenceLevel, confidence: float | None = None) -> MixtureEntry:
    return MixtureEntry(
        document_type=kind,
        presence_level=level,
        confidence=_confidence(level) if confidence is None else confidence,
        overall_share=share,
    )


def _as_presence(entry: MixtureEntry) -> TypePresence:
    return _presence(entry.document_type, entry.overall_share, entry.presence_level, entry.confidence)


def _confidence(level: PresenceLevel) -> float:
    # An expert is asked what stands there, not how sure they are.
    return 0.0 if level is PresenceLevel.NO_EVIDENCE else 1.0


def _shares(segment: Segment) -> list[Decimal]:
    return exact(presence.segment_share for presence in segment.segment_composition)


def _levels(segments: Sequence[Segment]) -> Mapping[DocumentType, PresenceLevel]:
    """The strongest presence of each type in any segment."""
    strength = list(PresenceLevel)
    levels = dict.fromkeys(DocumentType, PresenceLevel.NO_EVIDENCE)
    for segment in segments:
        for presence in segment.segment_composition:
            kind, level = presence.document_type, presence.presence_level
            levels[kind] = min(levels[kind], level, key=strength.index)
    return levels


def _classification(
    agent: ClassificationOutput | None,
    overall: DocumentType | None,
    segments: tuple[Segment, ...],
    mixture: tuple[MixtureEntry, ...],
) -> ClassificationOutput:
    return ClassificationOutput(
        dominant_type_overall=overall,
        number_of_segments=len(segments),
        segments=segments,
        document_mixture=mixture,
        vendor_signals=agent.vendor_signals if agent else (),
        # The agent's opinion of its own answer says nothing about the expert's.
        self_evaluation=None,
    )
