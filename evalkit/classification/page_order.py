"""Are all pages of each document there, once and in order? By the page counts that documents print on themselves.

Contract rulings 21 and 37: what is missing, out of order or there twice is put to a person, with the pages' numbers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final

from evalkit.classification.schema import ClassificationOutput, Segment
from evalkit.classification.second_opinion_boundaries import find_pagination_marks, find_running_pagination
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.furniture import strip_stamp_lines
from evalkit.issue import Issue, IssueSeverity

PAGES_MISSING_CODE: Final = "V2-PAGES-MISSING"
PAGES_ORDER_CODE: Final = "V2-PAGES-ORDER"
PAGES_REPEATED_CODE: Final = "V2-PAGES-REPEATED"

_TRANSPORT_PATTERN = re.compile(r"fax|\b(?:from|to)\s*:|\d{1,2}:\d{2}|\bprinted\b", re.IGNORECASE)
"""A count in a line of a fax machine or printer is of what was sent or printed, not of the document."""
_MAX_STAMP_LENGTH = 300
"""Characters of a line in which such words are looked for."""
_MIN_REPEATED_WORDS = 30
"""Pages of fewer words may be equal by chance, such as forms and separators."""
_MIN_PRESENT_SHARE = 1 / 3
"""Of which less is there, the count is of a transmission or print-out, or was misread."""


def find_page_order_issues(classification: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    """Raise V2-PAGES-MISSING and V2-PAGES-ORDER by printed counts of each segment, V2-PAGES-REPEATED by equal text."""
    # What a file of several documents counts through is the file's own count.
    own_counts = find_running_pagination(bundle) if len(classification.segments) > 1 else frozenset()
    for segment in classification.segments:
        pages = list(bundle.iter_pages(segment.start_page, segment.end_page))
        if counts := _map_pages_to_pagination_marks(pages, own_counts):
            yield from _check_pagination(
                segment, counts, [page.page_num for page in pages if page.page_num not in counts]
            )
    yield from _find_repeated_pages(classification, bundle)


def _map_pages_to_pagination_marks(
    pages: Sequence[Page], running_pagination: AbstractSet[tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    """Page → its number and the number of pages, as the document counts itself; empty where not all pages agree on it."""
    counts_by_page = {
        page.page_num: {
            (number, total)
            for number, total, line in find_pagination_marks(page.text)
            if 1 <= number <= total
            and (number - page.page_num, total) not in running_pagination
            and not _TRANSPORT_PATTERN.search(line[:_MAX_STAMP_LENGTH])
        }
        for page in pages
        if page.text.strip()
    }
    totals = Counter(total for counts in counts_by_page.values() for total in {total for _, total in counts})
    if not totals:
        return {}
    (total, page_count), *_ = totals.most_common(1)
    if page_count < len(counts_by_page):
        return {}
    return {page: min(count for count in counts if count[1] == total) for page, counts in counts_by_page.items()}


def _check_pagination(
    segment: Segment, mark_by_page: dict[int, tuple[int, int]], blank_pages: Sequence[int]
) -> Iterator[Issue]:
    total = next(iter(mark_by_page.values()))[1]
    numbers = {number for number, _ in mark_by_page.values()}
    # A print-out of a whole record counts on over its documents: what comes before a document's first page, or after the
    # last of one that does not begin with page 1, is missed only if the count is near enough to be the document's.
    first = 1 if min(numbers) <= 2 <= len(numbers) else min(numbers)
    last = total if first == 1 else max(numbers)
    # A blank page bears no number, and is there.
    blank_numbers = {
        number + blank_page - page for blank_page in blank_pages for page, (number, _) in mark_by_page.items()
    }
    missing = sorted({*range(first, last + 1)} - numbers - blank_numbers)
    if missing and len(numbers) >= _MIN_PRESENT_SHARE * (last + 1 - first):
        yield _build_issue(
            PAGES_MISSING_CODE,
            f"Segment {segment.segment_index} counts {total} pages, but {_format_page_numbers(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not in it",
            "Look for the missing pages, or whether the segment's pages are of one document",
            min(mark_by_page),
            segment,
        )
    for (_, (previous_number, _)), (page, (number, _)) in pairwise(sorted(mark_by_page.items())):
        if number < previous_number:
            yield _build_issue(
                PAGES_ORDER_CODE,
                f"Page {page} says that it is page {number} of {total}, but the page before says {previous_number} of {total}",
                "Look at the order of the pages",
                page,
                segment,
            )
            return


def _find_repeated_pages(classification: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    pages_by_text: dict[str, list[int]] = defaultdict(list)
    for page in bundle.pages:
        text = strip_stamp_lines(page)
        if len(text.split()) >= _MIN_REPEATED_WORDS:
            pages_by_text[re.sub(r"[\W_]+", "", text).casefold()].append(page.page_num)
    for page_numbers in pages_by_text.values():
        if len(page_numbers) > 1:
            repeated_page = page_numbers[1]
            segment = next(
                (part for part in classification.segments if part.start_page <= repeated_page <= part.end_page), None
            )
            yield _build_issue(
                PAGES_REPEATED_CODE,
                f"{_format_page_numbers(page_numbers).capitalize()} have the same text",
                "Check whether a page is there twice",
                repeated_page,
                segment,
            )


def _format_page_numbers(numbers: Sequence[int]) -> str:
    """As "page 3", "pages 3 and 5" or "pages 3, 4 and 5"."""
    *first, last = map(str, numbers)
    return f"pages {', '.join(first)} and {last}" if first else f"page {last}"


def _build_issue(code: str, message: str, suggested_fix: str, page: int, segment: Segment | None) -> Issue:
    return Issue.create(
        "V2",
        code,
        IssueSeverity.MAJOR,
        message,
        location=f"segment {segment.segment_index}" if segment else "segments",
        suggested_fix=suggested_fix,
        segment_index=segment.segment_index if segment else None,
        page=page,
    )
