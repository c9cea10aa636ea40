"""Automatic repairs of an answer by arithmetic or counting, without loss.

The table and the answer's numbers decide if an issue is auto-fixable, never a model. Each repair changes only what its
row describes and keeps the order of segments and types.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ConfigDict

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
    compute_mixture,
    convert_to_decimals,
    normalise_shares,
)
from evalkit.core.records import DiscreetModel
from evalkit.issue import Issue

#: Largest allowed distance of a sum of shares from 1, inclusive.
SUM_TOLERANCE = Decimal("0.01")
#: Largest distance of a sum of shares from 1, inclusive, at which the shares may be divided by their sum.
REPAIRABLE_SUM_TOLERANCE = Decimal("0.10")

Classification = ClassificationOutput


class Repair(DiscreetModel):
    """One automatic repair of an answer, applied or proposed."""

    model_config = ConfigDict(frozen=True)

    issue_id: str
    """Id of the repaired issue."""
    code: str
    location: str
    description: str
    """Description of the change, for the expert."""
    before: Any
    """The affected values before the repair, as JSON."""
    after: Any
    """The affected values after the repair, as JSON."""


@dataclass(frozen=True)
class _RepairRule:
    """One row of the repair table: a repair for the issues of one code.

    The functions' second argument is the segment's position in ``segments``, from 0; None for the whole document.
    """

    code: str
    description: str
    can_repair: Callable[[Classification, int | None], bool]
    repair: Callable[[Classification, int | None], Classification]
    read_affected_values: Callable[[Classification, int | None], Any]


def has_unit_sum(shares: Iterable[float], tolerance: Decimal = SUM_TOLERANCE) -> bool:
    """Return True if the shares sum to 1 within the inclusive tolerance."""
    return abs(sum(convert_to_decimals(shares), Decimal(0)) - 1) <= tolerance


def find_missing_types(present_types: Iterable[DocumentType]) -> list[DocumentType]:
    """List the document types that ``present_types`` lacks, in enum order."""
    seen_types = set(present_types)
    return [kind for kind in DocumentType if kind not in seen_types]


def _get_share_rows(answer: Classification, segment_position: int | None) -> Sequence[MixtureEntry | TypePresence]:
    return (
        answer.document_mixture if segment_position is None else answer.segments[segment_position].segment_composition
    )


def _get_share_field_name(segment_position: int | None) -> str:
    return "overall_share" if segment_position is None else "segment_share"


def _read_shares(answer: Classification, segment_position: int | None) -> list[float]:
    return [getattr(row, _get_share_field_name(segment_position)) for row in _get_share_rows(answer, segment_position)]


def _replace_share_rows(
    answer: Classification, segment_position: int | None, rows: Iterable[MixtureEntry | TypePresence]
) -> Classification:
    if segment_position is None:
        return answer.model_copy(update={"document_mixture": tuple(rows)})
    segments = list(answer.segments)
    segments[segment_position] = segments[segment_position].model_copy(update={"segment_composition": tuple(rows)})
    return answer.model_copy(update={"segments": tuple(segments)})


def _can_normalise_shares(answer: Classification, segment_position: int | None) -> bool:
    shares = _read_shares(answer, segment_position)
    return all(share >= 0 for share in shares) and has_unit_sum(shares, REPAIRABLE_SUM_TOLERANCE)


def _normalise_shares(answer: Classification, segment_position: int | None) -> Classification:
    rows = zip(
        _get_share_rows(answer, segment_position), normalise_shares(_read_shares(answer, segment_position)), strict=True
    )
    share_name = _get_share_field_name(segment_position)
    return _replace_share_rows(
        answer, segment_position, (row.model_copy(update={share_name: share}) for row, share in rows)
    )


def _add_missing_types(answer: Classification, segment_position: int | None) -> Classification:
    rows = _get_share_rows(answer, segment_position)
    row_class = MixtureEntry if segment_position is None else TypePresence
    absent = {
        "presence_level": PresenceLevel.NO_EVIDENCE,
        "confidence": 0.0,
        _get_share_field_name(segment_position): 0.0,
    }
    missing_types = find_missing_types(row.document_type for row in rows)
    added_rows = [row_class.model_validate({"document_type": kind, **absent}) for kind in missing_types]
    return _replace_share_rows(answer, segment_position, [*rows, *added_rows])


def _list_present_types(answer: Classification, segment_position: int | None) -> list[str]:
    return [row.document_type.value for row in _get_share_rows(answer, segment_position)]


def _count_pages(segment: Segment) -> int:
    return segment.end_page - segment.start_page + 1


def _get_segment(answer: Classification, segment_position: int | None) -> Segment:
    if segment_position is None:
        raise ValueError("a repair of one segment must state the segment's position in the list")
    return answer.segments[segment_position]


def _correct_page_count(answer: Classification, segment_position: int | None) -> Classification:
    segments = tuple(
        segment.model_copy(update={"segment_page_count": _count_pages(segment)})
        if index == segment_position
        else segment
        for index, segment in enumerate(answer.segments)
    )
    return answer.model_copy(update={"segments": segments})


def _can_compute_mixture(answer: Classification, segment_position: int | None) -> bool:
    return (
        segment_position is None
        and not answer.document_mixture
        and bool(answer.segments)
        and all(_count_pages(segment) >= 1 for segment in answer.segments)
        and all(_can_normalise_shares(answer, position) for position in range(len(answer.segments)))
        and all(
            len({presence.document_type for presence in segment.segment_composition})
            == len(segment.segment_composition)
            for segment in answer.segments
        )
    )


def _compute_missing_mixture(answer: Classification, _segment_position: int | None) -> Classification:
    completed_answer = answer
    for position in range(len(answer.segments)):
        completed_answer = _correct_page_count(_add_missing_types(completed_answer, position), position)
    return answer.model_copy(update={"document_mixture": compute_mixture(completed_answer.segments)})


_REPAIR_RULES = (
    _RepairRule(
        "V1-SEGMENT-COUNT",
        "count the listed documents",
        can_repair=lambda answer, _: True,
        repair=lambda answer, _: answer.model_copy(update={"number_of_segments": len(answer.segments)}),
        read_affected_values=lambda answer, _: answer.number_of_segments,
    ),
    _RepairRule(
        "V1-PAGE-COUNT",
        "count the document's pages",
        can_repair=lambda answer, position: _count_pages(_get_segment(answer, position)) >= 1,
        repair=_correct_page_count,
        read_affected_values=lambda answer, position: _get_segment(answer, position).segment_page_count,
    ),
    _RepairRule(
        "V1-MISSING-TYPE",
        "add the missing types: nothing of them is there",
        can_repair=lambda answer, position: has_unit_sum(_read_shares(answer, position)),
        repair=_add_missing_types,
        read_affected_values=_list_present_types,
    ),
    _RepairRule(
        "V1-MISSING-TYPE",
        "compute the file's shares from those of its documents and their pages",
        can_repair=_can_compute_mixture,
        repair=_compute_missing_mixture,
        read_affected_values=_list_present_types,
    ),
    _RepairRule(
        "V2-SEGMENT-SHARE-SUM",
        "divide the shares of the document's types by their sum",
        can_repair=_can_normalise_shares,
        repair=_normalise_shares,
        read_affected_values=_read_shares,
    ),
    _RepairRule(
        "V2-MIXTURE-SHARE-SUM",
        "divide the shares of the file's types by their sum",
        can_repair=_can_normalise_shares,
        repair=_normalise_shares,
        read_affected_values=_read_shares,
    ),
)


def is_repairable(code: str, answer: Classification, segment_index: int | None) -> bool:
    """Return True if an issue with this code in this segment can be repaired.

    ``segment_index`` None: an issue of the whole document.
    """
    return _find_repair_rule(code, answer, segment_index) is not None


def _find_repair_rule(
    code: str, answer: Classification, segment_index: int | None
) -> tuple[_RepairRule, int | None] | None:
    """Find the repair table's first row for an issue, and the segment's position.

    None if no row can, or if not exactly one segment has ``segment_index``.
    """
    positions = [position for position, segment in enumerate(answer.segments) if segment.segment_index == segment_index]
    position = positions[0] if len(positions) == 1 else None
    if (segment_index is None) != (position is None):
        return None
    usable_rules = (rule for rule in _REPAIR_RULES if rule.code == code and rule.can_repair(answer, position))
    return next(((rule, position) for rule in usable_rules), None)


class AutoFixEngine:
    """Engine that applies the table's repairs, or only proposes them."""

    def apply(self, answer: Classification, issues: Iterable[Issue]) -> tuple[Classification, list[Repair]]:
        """Repair every open issue that can be repaired automatically, in order.

        Returns the repaired answer, and the repairs that were applied.
        """
        repairs = []
        for issue in issues:
            found_repair = _find_repair_rule(issue.code, answer, issue.segment_index)
            if found_repair is None or issue.status != "open" or issue.origin != "rule":
                continue
            rule, position = found_repair
            repaired_answer = rule.repair(answer, position)
            repairs.append(
                Repair(
                    issue_id=issue.issue_id,
                    code=issue.code,
                    location=issue.location,
                    description=rule.description,
                    before=rule.read_affected_values(answer, position),
                    after=rule.read_affected_values(repaired_answer, position),
                )
            )
            answer = repaired_answer
        return answer, repairs

    def propose(self, answer: Classification, issues: Iterable[Issue]) -> list[Repair]:
        """List the repairs that ``apply`` would make, without making them."""
        return self.apply(answer, issues)[1]
