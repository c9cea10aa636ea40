"""Shape of a classifier's answer: names and types of its fields.

Ranges, counts, sums and completeness are not checked here but by V1 and V2, so that a person sees errors as issues
instead of a parse error. An answer of another shape becomes ``V1-UNPARSEABLE``.
"""

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from functools import partial
from operator import not_
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from evalkit.core.package_tables import PatternTable, load_package_table
from evalkit.core.records import DiscreetModel
from evalkit.core.wording import format_page_range
from evalkit.document_types import DocumentType as DocumentType  # noqa: PLC0414 - a promised import path
from evalkit.issue import PageBox

#: Types that state results of a laboratory or an imaging department; trap 2 checks claims of these types.
REPORT_TYPES = (DocumentType.PATHOLOGY_REPORT, DocumentType.GENOMIC_REPORT, DocumentType.RADIOLOGY_REPORT)


class PresenceLevel(StrEnum):
    """Presence of a type in a segment or document."""

    PRIMARY = "PRIMARY"
    EMBEDDED_RAW = "EMBEDDED_RAW"
    MENTION_ONLY = "MENTION_ONLY"
    NO_EVIDENCE = "NO_EVIDENCE"


# a count that is text, a truth value or a fraction is refused instead of converted
StrictInt = Annotated[int, Field(strict=True)]
StrictFiniteFloat = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class _AnswerModel(DiscreetModel):
    model_config = ConfigDict(frozen=True, extra="ignore", from_attributes=True)


class Evidence(_AnswerModel):
    """A quote that is claimed to stand in the document."""

    snippet: str
    page: StrictInt
    anchors_found: tuple[str, ...] = ()
    seen_in_picture: bool = Field(default=False, exclude_if=not_)
    """True if a model read the quote only in the page's picture, not in its text; not written if False."""


class TypePresence(_AnswerModel):
    """Share of one segment that is of one document type."""

    document_type: DocumentType
    presence_level: PresenceLevel
    confidence: StrictFiniteFloat
    segment_share: StrictFiniteFloat
    top_evidence: tuple[Evidence, ...] = ()


class Segment(_AnswerModel):
    """A page range that is one source document."""

    segment_index: StrictInt
    start_page: StrictInt
    end_page: StrictInt
    segment_page_count: StrictInt
    dominant_type: DocumentType | None
    """None: cannot tell."""
    reasoning: str = ""
    segment_composition: tuple[TypePresence, ...]

    @property
    def page_range_text(self) -> str:
        """Its pages in words: "page 3" or "pages 3–5"."""
        return format_page_range(self.start_page, self.end_page)


class ReviewedEvidence(Evidence):
    """A quote in a reviewed answer: who quoted it, and if an expert confirmed it."""

    by: Literal["expert"] | None = Field(default=None, exclude_if=not_)
    """``expert`` if a person selected the passage; None, and not written, if the program quoted it."""
    vouched: bool | None = Field(default=None, exclude_if=lambda vouched: vouched is None)
    """True if an expert looked at the quote and found it right. None, and not written, without a review."""
    boxes: tuple[PageBox, ...] = Field(default=(), exclude_if=not_)
    """The rectangles that the expert selected."""


class ReviewedPresence(TypePresence):
    """Presence of a type in a reviewed answer."""

    top_evidence: tuple[ReviewedEvidence, ...] = ()
    evidence: Literal["refuted"] | None = Field(default=None, exclude_if=not_)
    """``refuted`` if an expert struck every quote but vouches for the type; else None, and not written."""
    share_vouched: bool = Field(default=True, exclude_if=bool)
    """False if the share was computed because an expert changed what is present; not written if True."""


class ReviewedSegment(Segment):
    """Segment of a reviewed answer."""

    segment_composition: tuple[ReviewedPresence, ...]


class MixtureEntry(_AnswerModel):
    """Share of the whole document that is of one document type."""

    document_type: DocumentType
    presence_level: PresenceLevel
    confidence: StrictFiniteFloat
    overall_share: StrictFiniteFloat


class ClassificationOutput(_AnswerModel):
    """A classifier's whole answer about one document."""

    dominant_type_overall: DocumentType | None
    """None: cannot tell."""
    number_of_segments: StrictInt
    segments: tuple[Segment, ...]
    document_mixture: tuple[MixtureEntry, ...]
    vendor_signals: tuple[str, ...] = ()
    self_evaluation: str | dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check_serialisable(self) -> Self:
        # a lone surrogate or very deep nesting can be parsed from JSON, but not be written as JSON again
        try:
            self.model_dump_json()
        except ValueError:
            raise ValueError(
                "the answer contains characters that JSON cannot represent, or is nested too deeply"
            ) from None
        return self

    @property
    def typed_page_ranges(self) -> list[tuple[int, int, DocumentType | None]]:
        """First page, last page and type of each segment."""
        return [(segment.start_page, segment.end_page, segment.dominant_type) for segment in self.segments]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return self.model_dump(mode="json")


class ReviewedClassification(ClassificationOutput):
    """Classification after an expert's review; these fields are never sent to a model."""

    segments: tuple[ReviewedSegment, ...]

    @property
    def has_refuted_type(self) -> bool:
        """True if an expert confirmed a segment's type but struck out all its quotes."""
        return any(presence.evidence for segment in self.segments for presence in segment.segment_composition)


SHARE_STEP = Decimal("0.0001")


def to_percent(share: float | Decimal) -> int:
    """Convert a share (0..1) to whole per cent, without errors of float arithmetic."""
    return round(100 * Decimal(str(share)))


def convert_to_decimals(values: Iterable[float]) -> list[Decimal]:
    """Convert floats to decimal numbers with the same digits.

    The sum of 0.1 and 0.2 is then exactly 0.3, so that inclusive tolerances hold.
    """
    return [Decimal(repr(value)) for value in values]


def normalise_shares(shares: Iterable[float]) -> list[float]:
    """Divide the shares by their sum and round to four decimals with sum exactly 1.

    Largest remainder method: a share that is smaller than another does not become larger. ValueError if a share is
    negative or the sum is 0.

    >>> normalise_shares([0.50, 0.30, 0.10, 0.08, 0.08])
    [0.4717, 0.283, 0.0943, 0.0755, 0.0755]
    """
    numbers = convert_to_decimals(shares)
    total = sum(numbers)
    if total <= 0 or any(number < 0 for number in numbers):
        raise ValueError("shares must not be negative and their sum must be above 0")
    scaled = [number / total for number in numbers]
    floors = [number.quantize(SHARE_STEP, rounding=ROUND_FLOOR) for number in scaled]
    missing_steps = int((1 - sum(floors)) / SHARE_STEP)
    indices_by_remainder = sorted(range(len(scaled)), key=lambda index: (floors[index] - scaled[index], index))
    for index in indices_by_remainder[:missing_steps]:
        floors[index] += SHARE_STEP
    return [float(number) for number in floors]


def compute_mixture(segments: Sequence[Segment]) -> tuple[MixtureEntry, ...]:
    """Compute the mixture: each type's share of all segments, weighted by pages.

    The presence level and the confidence are the highest of all segments. Empty if there is no segment, or if one has no
    page, lacks a type or names it twice, or has a negative share or none above 0.
    """
    if not segments or not all(map(_has_complete_shares, segments)):
        return ()
    page_total = sum(segment.segment_page_count for segment in segments)
    presences = [presence for segment in segments for presence in segment.segment_composition]
    presences_by_type = {
        kind: [presence for presence in presences if presence.document_type is kind] for kind in DocumentType
    }
    page_weights = [segment.segment_page_count / page_total for segment in segments]
    shares = normalise_shares(
        [
            sum(
                weight * presence.segment_share
                for weight, presence in zip(page_weights, presences_by_type[kind], strict=True)
            )
            for kind in DocumentType
        ]
    )
    return tuple(
        MixtureEntry(
            document_type=kind,
            presence_level=min(
                (presence.presence_level for presence in presences_by_type[kind]), key=list(PresenceLevel).index
            ),
            confidence=max(presence.confidence for presence in presences_by_type[kind]),
            overall_share=share,
        )
        for kind, share in zip(DocumentType, shares, strict=True)
    )


def _has_complete_shares(segment: Segment) -> bool:
    shares = [presence.segment_share for presence in segment.segment_composition]
    types = sorted(presence.document_type for presence in segment.segment_composition)
    return segment.segment_page_count > 0 and types == sorted(DocumentType) and min(shares) >= 0 and max(shares) > 0


#: Forms of text that the verifiers and the classifier look for.
PATTERNS = PatternTable("evalkit.classification", "patterns.toml")
#: Load ``judging.toml``: the presence levels, and worked examples of types and traps; cached.
load_judging_guide = partial(load_package_table, "evalkit.classification", "judging.toml")
