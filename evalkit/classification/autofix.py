"""Repairs: what arithmetic or counting can mend without asking anybody, one row each.

Whether an issue is auto-fixable is decided here, by the table and the numbers, never by a model. Each repair changes
only what its row names and keeps the order of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
    exact,
    normalised,
)
from evalkit.issue import Issue

#: Share sums this far from 1 (both ends in) are right; up to the second figure they can be normalised.
SUM_TOLERANCE = Decimal("0.01")
SUM_REPAIRABLE = Decimal("0.10")

Classification = ClassificationOutput


class Repair(BaseModel):
    """One repair, done or offered."""

    model_config = ConfigDict(frozen=True)

    issue_id: str
    """The issue it mends."""
    code: str
    location: str
    description: str
    """What it does, in words for the expert."""
    before: Any
    """The values it changes, as JSON."""
    after: Any


@dataclass(frozen=True)
class _Row:
    """How issues of one code are repaired. ``position`` is the segment's place in the array, None for the document."""

    code: str
    description: str
    possible: Callable[[Classification, int | None], bool]
    repaired: Callable[[Classification, int | None], Classification]
    shown: Callable[[Classification, int | None], Any]


def sums_to_one(shares: Iterable[float], tolerance: Decimal = SUM_TOLERANCE) -> bool:
    """Whether the shares sum to 1 within the tolerance, which is inclusive."""
    return abs(sum(exact(shares), Decimal(0)) - 1) <= tolerance


def missing_types(present: Iterable[DocumentType]) -> list[DocumentType]:
    """The document types that are not there, in their usual order."""
    there = set(present)
    return [kind for kind in DocumentType if kind not in there]


def _shares(answer: Classification, position: int | None) -> list[float]:
    if position is None:
        return [entry.overall_share for entry in answer.document_mixture]
    return [presence.segment_share for presence in answer.segments[position].segment_composition]


def _with_shares(answer: Classification, position: int | None, shares: list[float]) -> Classification:
    if position is None:
        entries = zip(answer.document_mixture, shares, strict=True)
        mixture = tuple(entry.model_copy(update={"overall_share": share}) for entry, share in entries)
        return answer.model_copy(update={"document_mixture": mixture})
    segment = answer.segments[position]
    presences = zip(segment.segment_composition, shares, strict=True)
    composition = tuple(presence.model_copy(update={"segment_share": share}) for presence, share in presences)
    return _with_segment(answer, position, {"segment_composition": composition})


def _with_segment(answer: Classification, position: int, update: dict[str, Any]) -> Classification:
    segments = list(answer.segments)
    segments[position] = segments[position].model_copy(update=update)
    return answer.model_copy(update={"segments": tuple(segments)})


def _can_normalise(answer: Classification, position: int | None) -> bool:
    shares = _shares(answer, position)
    return all(share >= 0 for share in shares) and sums_to_one(shares, SUM_REPAIRABLE)


def _normalise(answer: Classification, position: int | None) -> Classification:
    return _with_shares(answer, position, normalised(_shares(answer, position)))


def _can_add_types(answer: Classification, position: int | None) -> bool:
    return sums_to_one(_shares(answer, position))


def _add_types(answer: Classification, position: int | None) -> Classification:
    none = PresenceLevel.NO_EVIDENCE
    if position is None:
        entries = answer.document_mixture
        added = tuple(
            MixtureEntry(document_type=kind, presence_level=none, confidence=0.0, overall_share=0.0)
            for kind in missing_types(entry.document_type for entry in entries)
        )
        return answer.model_copy(update={"document_mixture": entries + added})
    composition = answer.segments[position].segment_composition
    absent = tuple(
        TypePresence(document_type=kind, presence_level=none, confidence=0.0, segment_share=0.0)
        for kind in missing_types(presence.document_type for presence in composition)
    )
    return _with_segment(answer, position, {"segment_composition": composition + absent})


def _types_there(answer: Classification, position: int | None) -> list[str]:
    if position is None:
        return [entry.document_type.value for entry in answer.document_mixture]
    return [presence.document_type.value for presence in answer.segments[position].segment_composition]


def _page_count(segment: Segment) -> int:
    return segment.end_page - segment.start_page + 1


def _segment(answer: Classification, position: int | None) -> Segment:
    if position is None:
        raise ValueError("a repair of a segment needs the segment's position")
    return answer.segments[position]


def _correct_page_count(answer: Classification, position: int | None) -> Classification:
    segments = tuple(
        segment.model_copy(update={"segment_page_count": _page_count(segment)}) if place == position else segment
        for place, segment in enumerate(answer.segments)
    )
    return answer.model_copy(update={"segments": segments})


_TABLE = (
    _Row(
        "V1-SEGMENT-COUNT",
        "set number_of_segments to the number of segments that are there",
        possible=lambda answer, _: True,
        repaired=lambda answer, _: answer.model_copy(update={"number_of_segments": len(answer.segments)}),
        shown=lambda answer, _: answer.number_of_segments,
    ),
    _Row(
        "V1-PAGE-COUNT",
        "set segment_page_count to end - start + 1",
        possible=lambda answer, at: _page_count(_segment(answer, at)) >= 1,
        repaired=_correct_page_count,
        shown=lambda answer, at: _segment(answer, at).segment_page_count,
    ),
    _Row(
        "V1-MISSING-TYPE",
        "add the missing types as NO_EVIDENCE with share 0",
        possible=_can_add_types,
        repaired=_add_types,
        shown=_types_there,
    ),
    _Row(
        "V2-SEGMENT-SHARE-SUM",
        "divide the shares of the segment by their sum",
        possible=_can_normalise,
        repaired=_normalise,
        shown=_shares,
    ),
    _Row(
        "V2-MIXTURE-SHARE-SUM",
        "divide the shares of the document by their sum",
        possible=_can_normalise,
        repaired=_normalise,
        shown=_shares,
    ),
)
_ROWS = {row.code: row for row in _TABLE}


def is_repairable(code: str, answer: Classification, segment_index: int | None) -> bool:
    """Whether the table can mend an issue of that code in that segment (None: in the document as a whole)."""
    row = _ROWS.get(code)
    if row is None:
        return False
    try:
        return row.possible(answer, _position(answer, segment_index))
    except _Ambiguous:
        return False


class AutoFixEngine:
    """Applies, or only offers, the repairs of the table."""

    def apply(self, answer: Classification, issues: Iterable[Issue]) -> tuple[Classification, list[Repair]]:
        """The answer with every open auto-fixable issue repaired, and what was done, in the order of the issues."""
        done = []
        for issue in issues:
            if issue.status != "open" or issue.origin != "rule":
                continue
            if not is_repairable(issue.code, answer, issue.segment_index):
                continue
            row, position = _ROWS[issue.code], _position(answer, issue.segment_index)
            changed = row.repaired(answer, position)
            done.append(
                Repair(
                    issue_id=issue.issue_id,
                    code=issue.code,
                    location=issue.location,
                    description=row.description,
                    before=row.shown(answer, position),
                    after=row.shown(changed, position),
                )
            )
            answer = changed
        return answer, done

    def propose(self, answer: Classification, issues: Iterable[Issue]) -> list[Repair]:
        """The repairs that ``apply`` would do."""
        return self.apply(answer, issues)[1]


class _Ambiguous(Exception):
    """Several segments, or none, have that index: nobody can say which one is meant."""


def _position(answer: Classification, segment_index: int | None) -> int | None:
    """The place in the array of the segment with that index."""
    if segment_index is None:
        return None
    places = [place for place, segment in enumerate(answer.segments) if segment.segment_index == segment_index]
    if len(places) != 1:
        raise _Ambiguous
    return places[0]
