"""V1: checks of the answer's structure by counting, without a model.

Source: specification 000, slide 4 (six checks), contract rulings 1 and 2. After a BLOCKER of V1 no verifier asks a
model. Negative shares, types named twice and segment numbering are checked in addition to the slide, because every
later check relies on them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from evalkit.classification.autofix import find_missing_types, is_repairable
from evalkit.classification.findings import ShippedVerifier
from evalkit.classification.schema import (
    ClassificationOutput,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity, number_issues

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR

#: ``Issue.location`` of issues about the mixture of the whole document.
MIXTURE_LOCATION = "document_mixture"


class V1SchemaValidator(ShippedVerifier):
    """Verifier V1: checks structure, counts, ranges and completeness of an answer."""

    agent = "V1"

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
        """Return all structural faults as issues, numbered from V1-0001."""
        return number_issues("V1", _find_structural_issues(classification, bundle.total_pages))


def _find_structural_issues(answer: ClassificationOutput, total_pages: int) -> Iterator[Issue]:
    yield from _check_segment_count(answer)
    yield from _check_segment_indexes(answer)
    for segment in answer.segments:
        yield from _check_page_range(segment, total_pages)
        yield from _check_page_count(answer, segment)
        location = f"segment {segment.segment_index}"
        yield from _check_number_ranges(segment.segment_composition, location, segment)
        yield from _check_types(answer, segment.segment_composition, location, segment)
        yield from _check_evidence(segment)
    yield from _check_number_ranges(answer.document_mixture, MIXTURE_LOCATION, None)
    yield from _check_types(answer, answer.document_mixture, MIXTURE_LOCATION, None)


def _check_segment_count(answer: ClassificationOutput) -> Iterator[Issue]:
    actual_count = len(answer.segments)
    if answer.number_of_segments != actual_count:
        yield Issue.create(
            "V1",
            "V1-SEGMENT-COUNT",
            BLOCKER,
            f"number_of_segments is {answer.number_of_segments} but segments array has {actual_count} items",
            location="number_of_segments",
            suggested_fix=f"Set number_of_segments to {actual_count}",
            auto_fixable=is_repairable("V1-SEGMENT-COUNT", answer, None),
            facts={"stated": answer.number_of_segments, "listed": actual_count},
        )


def _check_segment_indexes(answer: ClassificationOutput) -> Iterator[Issue]:
    indexes = [segment.segment_index for segment in answer.segments]
    if indexes != list(range(1, len(indexes) + 1)):
        is_repeated = len(set(indexes)) < len(indexes)
        yield Issue.create(
            "V1",
            "V1-SEGMENT-INDEX",
            MAJOR if is_repeated else MINOR,
            "Several segments have the same segment_index"
            if is_repeated
            else "The segments are not numbered 1, 2, 3 … in their order",
            location="segments",
            suggested_fix="Number the segments from 1 in the order of their pages",
            facts={"listed": len(indexes)},
        )


def _check_page_range(segment: Segment, total_pages: int) -> Iterator[Issue]:
    start, end = segment.start_page, segment.end_page
    if start > end:
        fault = f"starts on page {start} but ends on page {end}"
    elif start < 1 or end > total_pages:
        fault = f"covers pages {start}–{end} but the document has pages 1–{total_pages}"
    else:
        return
    yield Issue.create(
        "V1",
        "V1-PAGE-RANGE",
        BLOCKER,
        f"Segment {segment.segment_index} {fault}",
        location=f"segment {segment.segment_index}",
        suggested_fix="Look up in the document where this segment begins and ends",
        segment_index=segment.segment_index,
        facts={"first": start, "last": end, "total": total_pages},
    )


def _check_page_count(answer: ClassificationOutput, segment: Segment) -> Iterator[Issue]:
    expected_count = segment.end_page - segment.start_page + 1
    if expected_count >= 1 and segment.segment_page_count != expected_count:
        yield Issue.create(
            "V1",
            "V1-PAGE-COUNT",
            MAJOR,
            f"Segment {segment.segment_index} says it has {segment.segment_page_count} pages, "
            f"but pages {segment.start_page}–{segment.end_page} are {expected_count}",
            location=f"segment {segment.segment_index} → segment_page_count",
            suggested_fix=f"Set segment_page_count to {expected_count}",
            auto_fixable=is_repairable("V1-PAGE-COUNT", answer, segment.segment_index),
            segment_index=segment.segment_index,
            facts={"pages": segment.page_range_text, "stated": segment.segment_page_count, "actual": expected_count},
        )


def _check_number_ranges(
    entries: Sequence[TypePresence | MixtureEntry], location: str, segment: Segment | None
) -> Iterator[Issue]:
    for entry in entries:
        share = entry.segment_share if isinstance(entry, TypePresence) else entry.overall_share
        for code, name, value, is_answer_wrong in (
            ("V1-CONFIDENCE-RANGE", "confidence", entry.confidence, not 0 <= entry.confidence <= 1),
            # a share above 1 is left to V2, which finds the wrong sum; a negative share can be part of a right sum
            ("V1-SHARE-RANGE", "share", share, share < 0),
        ):
            if is_answer_wrong:
                yield Issue.create(
                    "V1",
                    code,
                    BLOCKER,
                    f"{entry.document_type.value} has {name} {value}, which is not between 0 and 1",
                    location=f"{location} → {entry.document_type.value}",
                    segment_index=segment.segment_index if segment else None,
                    document_type=entry.document_type.value,
                    facts=describe_scope(segment) | {"number": value},
                )


def _check_types(
    answer: ClassificationOutput,
    entries: Sequence[TypePresence | MixtureEntry],
    location: str,
    segment: Segment | None,
) -> Iterator[Issue]:
    segment_index = segment.segment_index if segment else None
    counts = Counter(entry.document_type for entry in entries)
    subject = "The document mixture" if segment_index is None else f"Segment {segment_index}"
    if missing_types := [kind.value for kind in find_missing_types(counts)]:
        yield Issue.create(
            "V1",
            "V1-MISSING-TYPE",
            BLOCKER,
            f"{subject} says nothing about {', '.join(missing_types)}",
            location=location,
            suggested_fix="Add the missing types as NO_EVIDENCE with share 0"
            if entries
            else "Compute the shares from the segments' shares, weighted by their pages",
            auto_fixable=is_repairable("V1-MISSING-TYPE", answer, segment_index),
            segment_index=segment_index,
            facts=describe_scope(segment) | {"types": " and ".join(missing_types), "count": len(missing_types)},
        )
    for kind, count in counts.items():
        if count > 1:
            yield Issue.create(
                "V1",
                "V1-DUPLICATE-TYPE",
                BLOCKER,
                f"{subject} names {kind.value} {count} times",
                location=f"{location} → {kind.value}",
                segment_index=segment_index,
                document_type=kind.value,
                facts=describe_scope(segment) | {"count": count},
            )


def describe_scope(segment: Segment | None) -> dict[str, int | float | str]:
    """Add to ``facts`` the segment's pages, or that the whole file is concerned."""
    return {"pages": segment.page_range_text} if segment else {"scope": "file"}


def _check_evidence(segment: Segment) -> Iterator[Issue]:
    for presence in segment.segment_composition:
        if presence.presence_level is not PresenceLevel.NO_EVIDENCE and not presence.top_evidence:
            yield Issue.create(
                "V1",
                "V1-NO-EVIDENCE",
                MINOR,
                f"{presence.document_type.value} is {presence.presence_level.value} but has no evidence snippets",
                location=f"segment {segment.segment_index} → {presence.document_type.value}",
                segment_index=segment.segment_index,
                document_type=presence.document_type.value,
                facts={"pages": segment.page_range_text},
            )
