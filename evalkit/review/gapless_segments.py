"""Segments of an answer, adjusted so that each page belongs to exactly one."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from evalkit.classification.schema import DocumentType, Segment
from evalkit.core.records import StrictRecord


class SegmentDraft(StrictRecord):
    """A page range that the expert considers one document."""

    start_page: int
    """The first page, from 1."""
    end_page: int
    """The last page, itself included."""
    dominant_type: DocumentType | None
    """The document's type; None if not chosen yet."""


class DisputedSeam(NamedTuple):
    """Page where the answer's page ranges leave open if a document begins."""

    page: int
    """The page, from 2."""
    next_start: int
    """First page of the next document if the page continues the one before; ``page`` if none is left."""


def fit_segments_to_file(
    segments: Iterable[Segment], total_pages: int
) -> tuple[tuple[SegmentDraft, ...], tuple[DisputedSeam, ...]]:
    """Adjust an answer's segments to cover pages 1..total_pages without overlap.

    A page that several segments claim goes to the one that begins last, because a beginning is printed on the page and an
    end is only inferred. Pages that no segment claims go to the document before them; at the start of the file they are a
    document without a type. Reversed ranges are turned round, pages outside of the file ignored, and a range that is listed
    with two types has none. Each place where the ranges leave a choice is a seam; a gapless answer has none. Both results
    are empty if no segment has a page in the file.
    """
    types_by_range: dict[tuple[int, int], DocumentType | None] = {}
    reversed_starts = set()
    for segment in segments:
        first, last = sorted((segment.start_page, segment.end_page))
        if (first, last) != (segment.start_page, segment.end_page):
            reversed_starts.add(first)
        page_range = max(first, 1), min(last, total_pages)
        if page_range[0] <= page_range[1]:
            is_conflict = types_by_range.setdefault(page_range, segment.dominant_type) != segment.dominant_type
            types_by_range[page_range] = None if is_conflict else segment.dominant_type
    if not types_by_range:
        return (), ()
    owners: list[tuple[int, int] | None] = [None] * total_pages
    claims = [0] * (total_pages + 1)
    for first, last in sorted(types_by_range, key=lambda page_range: (page_range[0], -page_range[1])):
        owners[first - 1 : last] = [(first, last)] * (last - first + 1)
        claims[first - 1] += 1
        claims[last] -= 1
    runs = [(owner, [*pages]) for owner, pages in groupby(range(1, total_pages + 1), key=lambda page: owners[page - 1])]
    seams = tuple(_find_seams(runs, list(accumulate(claims)), reversed_starts))
    starts = [(pages[0], owner) for owner, pages in runs if owner or pages[0] == 1]
    ends = [start - 1 for start, _ in starts[1:]] + [total_pages]
    fitted = tuple(
        SegmentDraft(start_page=start, end_page=end, dominant_type=types_by_range[owner] if owner else None)
        for (start, owner), end in zip(starts, ends, strict=True)
    )
    return fitted, seams


def _find_seams(
    runs: Sequence[tuple[tuple[int, int] | None, list[int]]], claim_counts: Sequence[int], reversed_starts: set[int]
) -> Iterator[DisputedSeam]:
    for (owner_before, pages_before), (owner, pages) in pairwise(runs):
        page = pages[0]
        if owner_before and owner and max(claim_counts[page - 2 : page]) > 1:
            next_start = max(owner_before[1] + 1, page)
            yield DisputedSeam(page, next_start if next_start <= pages[-1] else page)
        elif owner is None or (owner_before is None and pages_before[0] == 1) or page in reversed_starts:
            yield DisputedSeam(page, page)


def is_gapless(segments: Sequence[Segment | SegmentDraft], total_pages: int) -> bool:
    """Return True if the segments, in order, cover 1..total_pages exactly once."""
    expected_starts = [1, *(segment.end_page + 1 for segment in segments)]
    return [*(segment.start_page for segment in segments), total_pages + 1] == expected_starts and all(
        segment.start_page <= segment.end_page for segment in segments
    )
