"""Checks for missing, misordered and repeated pages, by printed page counts.

Source: contract rulings 21 and 37. Each finding is an issue for a person that names the pages.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final

from evalkit.classification.offline.second_opinion_boundaries import find_pagination_marks, find_running_pagination
from evalkit.classification.schema import ClassificationOutput, Segment
from evalkit.core.grouping import group_by
from evalkit.core.wording import format_page_numbers, format_page_ranges
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.furniture import strip_stamp_lines
from evalkit.issue import Issue, IssueSeverity

PAGES_MISSING_CODE: Final = "V2-PAGES-MISSING"
PAGES_ORDER_CODE: Final = "V2-PAGES-ORDER"
PAGES_REPEATED_CODE: Final = "V2-PAGES-REPEATED"

#: Line of a fax machine or printer: a page count in it is that of the transmission or print-out, not of the document.
_TRANSPORT_PATTERN = re.compile(r"fax|\b(?:from|to)\s*:|\d{1,2}:\d{2}|\bprinted\b", re.IGNORECASE)
#: Number of first characters of a line that are searched for words of a fax machine or printer.
_MAX_STAMP_LENGTH = 300
#: Minimum number of words of pages that are compared; shorter pages, such as separators, may be equal by chance.
_MIN_REPEATED_WORDS = 30
#: Minimum share of a count's pages that must be in the segment. Below it the count is not the document's, or was
#: misread.
_MIN_PRESENT_SHARE = 1 / 3


def find_page_order_issues(classification: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    """Raise issues about missing, misordered and repeated pages.

    Missing and misordered pages are found by the printed counts of each segment, repeated pages by equal text.
    """
    # if there are several documents, a count that runs through all pages belongs to the file
    own_counts = find_running_pagination(bundle) if len(classification.segments) > 1 else frozenset()
    for segment in classification.segments:
        pages = list(bundle.iter_pages(segment.start_page, segment.end_page))
        if counts := _map_pages_to_pagination_marks(pages, own_counts):
            blank_pages = [page.page_num for page in pages if page.page_num not in counts]
            yield from _check_pagination(segment, counts, blank_pages, _find_numbers_counted_on(bundle, counts))
    yield from _find_repeated_pages(classification, bundle)


def _map_pages_to_pagination_marks(
    pages: Sequence[Page], running_pagination: AbstractSet[tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    """Return page → printed number and total; empty unless all pages have one total."""
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


def _find_numbers_counted_on(bundle: DocumentBundle, counts: Mapping[int, tuple[int, int]]) -> set[int]:
    """Return the printed numbers of all pages of the file that continue this count.

    If numbers outside of the segment belong to the count, the boundary is wrong or the count is the file's.
    """
    places = {(page - number, total) for page, (number, total) in counts.items()}
    return {
        number
        for page in bundle.pages
        for number, total, _ in find_pagination_marks(page.text)
        if (page.page_num - number, total) in places
    }


def _check_pagination(
    segment: Segment,
    counts: dict[int, tuple[int, int]],
    blank_pages: Sequence[int],
    numbers_counted_on: AbstractSet[int],
) -> Iterator[Issue]:
    total = next(iter(counts.values()))[1]
    numbers = {number for number, _ in counts.values()}
    # The print-out of a whole record counts on over its documents. Numbers before the segment's first, or after the last
    # number of a segment that does not begin with page 1, are missing only if the count can be the document's.
    first = 1 if min(numbers) <= 2 <= len(numbers) else min(numbers)
    last = total if first == 1 else max(numbers)
    # a blank page has no number, but may be the page with the missing number
    blank_numbers = {number + blank_page - page for blank_page in blank_pages for page, (number, _) in counts.items()}
    missing = sorted({*range(first, last + 1)} - numbers - blank_numbers - numbers_counted_on)
    if missing and len(numbers) >= _MIN_PRESENT_SHARE * (last + 1 - first):
        yield _build_issue(
            PAGES_MISSING_CODE,
            f"Segment {segment.segment_index} counts {total} pages, but {format_page_numbers(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not in it",
            "Look for the missing pages, or whether the segment's pages are of one document",
            min(counts),
            segment,
            {"pages": segment.page_range_text, "total": total, "missing": format_page_numbers(missing)},
        )
    for (_, (previous_number, _)), (page, (number, _)) in pairwise(sorted(counts.items())):
        if number < previous_number:
            yield _build_issue(
                PAGES_ORDER_CODE,
                f"Page {page} says that it is page {number} of {total}, but the page before says {previous_number} of {total}",
                "Look at the order of the pages",
                page,
                segment,
                {"number": number, "previous": previous_number, "total": total},
            )
            return


def _find_repeated_pages(classification: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    for copies in _find_repeated_ranges(bundle):
        repeated_page = copies[1][0]
        segment = next(
            (part for part in classification.segments if part.start_page <= repeated_page <= part.end_page), None
        )
        pages = format_page_ranges(copies)
        is_one_page = copies[0][0] == copies[0][1]
        yield _build_issue(
            PAGES_REPEATED_CODE,
            f"{pages.capitalize()} have the same text",
            f"Check whether {'a page is' if is_one_page else 'pages are'} there twice",
            repeated_page,
            segment,
            {"pages": pages.removeprefix("pages ")},
        )


def _find_repeated_ranges(bundle: DocumentBundle) -> list[list[tuple[int, int]]]:
    """Find page ranges of equal text: for each repeated part, all its copies.

    A copy is its first and last page. Pages of few words count only between other repeated pages.
    """
    texts = {page.page_num: strip_stamp_lines(page) for page in bundle.pages}
    keys = {page: re.sub(r"[\W_]+", "", text).casefold() for page, text in texts.items()}
    long_pages = [page for page, text in texts.items() if len(text.split()) >= _MIN_REPEATED_WORDS]
    pages_by_key = group_by(long_pages, keys.__getitem__)
    ranges: list[list[tuple[int, int]]] = []
    for pages in pages_by_key.values():
        if len(pages) < 2:
            continue
        if ranges and _is_same_part(ranges[-1], pages, keys):
            ranges[-1] = [(first, page) for (first, _), page in zip(ranges[-1], pages, strict=True)]
        else:
            ranges.append([(page, page) for page in pages])
    return ranges


def _is_same_part(copies: Sequence[tuple[int, int]], pages: Sequence[int], keys: Mapping[int, str]) -> bool:
    """Return True if each page follows a copy, with equal pages between."""
    if len(copies) != len(pages):
        return False
    gaps = {
        tuple(keys[page] for page in range(last + 1, next_page))
        for (_, last), next_page in zip(copies, pages, strict=True)
    }
    return len(gaps) == 1 and all(last < page for (_, last), page in zip(copies, pages, strict=True))


def _build_issue(
    code: str,
    message: str,
    suggested_fix: str,
    page: int,
    segment: Segment | None,
    facts: Mapping[str, int | str],
) -> Issue:
    return Issue.create(
        "V2",
        code,
        IssueSeverity.MAJOR,
        message,
        location=f"segment {segment.segment_index}" if segment else "segments",
        suggested_fix=suggested_fix,
        segment_index=segment.segment_index if segment else None,
        page=page,
        facts=facts,
    )
