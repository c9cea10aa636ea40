"""Second opinion on boundaries: does a page begin a document or continue one?

Rules without learned weights compare the patient, date, letterhead, page count and text forms
(:mod:`~evalkit.classification.offline.second_opinion_types`) of a page with the pages before it. The embedded
classifier weighs some of the same signs, among others.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rapidfuzz import fuzz

from evalkit.classification.offline.second_opinion_types import measure_type_signs_on_pages
from evalkit.classification.schema import ClassificationOutput, DocumentType, PresenceLevel, Segment
from evalkit.core.document_cache import cache_document_text
from evalkit.core.package_tables import PatternTable
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.furniture import get_body_text
from evalkit.documents.identity.file_persons import (
    compare_page_patients,
    get_page_patient_identity,
    has_patient_identifier,
)
from evalkit.documents.identity.same_person import SamePersonVerdict, have_disjoint_record_numbers
from evalkit.documents.identity.written_dates import WRITTEN_DATE_PATTERN, parse_written_date
from evalkit.issue import Issue, IssueSeverity

BOUNDARY_DOUBT_CODE: Final = "V2-BOUNDARY-DOUBT"

#: Summed weight of signs from which a page begins a document, whatever the answer says.
BEGINNING_THRESHOLD = 3.0
#: Summed weight of signs up to which a page continues the page before, whatever the answer says.
CONTINUATION_THRESHOLD = -3.0
#: Summed weight of signs up to which a beginning is doubted if the segment before is of the same type.
UNSUPPORTED_THRESHOLD = 0.0

#: Number of pages before a page that are compared with it, besides the document's first page.
_LOOKBACK_PAGES = 30
#: Number of first and of last lines in which the head and the end of a page are searched.
_HEAD_LINES, _FOOT_LINES = 8, 4


@dataclass(frozen=True)
class BoundarySign:
    """Sign that a document begins on a page (weight above 0) or does not."""

    weight: float
    description: str
    """End of the sentence "Page 3 …", for the expert."""
    quote: str | None = None


PATTERNS = PatternTable(
    "evalkit.classification.offline", "second_opinion_boundaries.toml", written_date=WRITTEN_DATE_PATTERN
)
_MIN_RUNNING_PAGES, _MAX_COUNTS_A_LINE = 3, 4
_MIN_REPEATED_HEADINGS, _MAX_HEADING_WORDS, _TITLE_LINES = 2, 8, 4
#: Maximum length of a title, and of a quote from a line.
_MAX_TITLE_LENGTH = 80
#: Minimum number of letters of a running line that can be compared.
_MIN_RUNNING_LINE_LETTERS = 20
#: Similarity, in per cent, from which two running lines are the same.
_MIN_SIMILARITY_PERCENT = 80.0
#: Lead of the new type's signs on the page, and of the old type's before it, that is a strong sign, or a weak one.
_STRONG_FORM_LEAD, _WEAK_FORM_LEAD = 4.0, 1.5


def collect_boundary_signs(
    previous_pages: Sequence[Page],
    page: Page,
    total_pages: int,
    contained_types: Container[DocumentType] = frozenset(),
    running_pagination: Container[tuple[int, int]] = frozenset(),
) -> list[BoundarySign]:
    """Collect the signs for and against a new document on ``page``.

    ``previous_pages``: pages of the document before ``page``, at least one. ``contained_types``: further types that the
    document contains, by the answer. ``running_pagination``: page counts of the whole file, from
    ``find_running_pagination``.
    """
    return [
        *_compare_pagination_marks(previous_pages, page, total_pages, running_pagination),
        *_compare_patients(previous_pages, page),
        *_compare_accession_numbers(previous_pages, page),
        *_compare_dates(previous_pages, page),
        *_compare_sections(previous_pages, page),
        *_compare_page_heads(previous_pages, page),
        *_compare_page_ends(previous_pages[-1], page),
        *_compare_text_forms(previous_pages, page, contained_types),
    ]


def find_boundary_issues(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Issue]:
    """Raise V2-BOUNDARY-DOUBT where the signs contradict the segments' boundaries.

    For pages inside a segment that seem to begin a document, and segments whose first page shows no beginning.
    ``v2_consistency`` raises the doubts that the classifier itself states.
    """
    running_pagination = find_running_pagination(bundle)
    for segment in answer.segments:
        pages = _drop_blank_pages(bundle.iter_pages(segment.start_page, segment.end_page))
        contained_types = get_contained_types(segment)
        for index in range(1, len(pages)):
            previous_pages = [pages[0], *pages[max(1, index - _LOOKBACK_PAGES) : index]]
            signs = collect_boundary_signs(
                previous_pages, pages[index], bundle.total_pages, contained_types, running_pagination
            )
            if _sum_weights(signs) >= BEGINNING_THRESHOLD:
                yield _build_boundary_issue(segment, pages[index], signs, is_beginning=True)
        earlier_pages = _drop_blank_pages(
            bundle.iter_pages(segment.start_page - _LOOKBACK_PAGES, segment.start_page - 1)
        )
        if earlier_pages and pages:
            signs = collect_boundary_signs(
                _select_last_segment_pages(answer, earlier_pages),
                pages[0],
                bundle.total_pages,
                running_pagination=running_pagination,
            )
            is_same_type = _get_type_of_page(answer, earlier_pages[-1].page_num) is segment.dominant_type
            if _sum_weights(signs) <= (UNSUPPORTED_THRESHOLD if is_same_type else CONTINUATION_THRESHOLD):
                yield _build_boundary_issue(segment, pages[0], signs, is_beginning=False)


def weigh_boundary(answer: ClassificationOutput, bundle: DocumentBundle, page_number: int) -> float:
    """Sum the signs for (above 0) and against a new document on a page.

    The page is compared with the last pages of the segment before it; 0 if there are none.
    """
    earlier_pages = _drop_blank_pages(bundle.iter_pages(page_number - _LOOKBACK_PAGES, page_number - 1))
    if not earlier_pages:
        return 0.0
    previous_pages = _select_last_segment_pages(answer, earlier_pages)
    page, running_pagination = bundle.page(page_number), find_running_pagination(bundle)
    return _sum_weights(
        collect_boundary_signs(previous_pages, page, bundle.total_pages, running_pagination=running_pagination)
    )


def _get_type_of_page(answer: ClassificationOutput, page_number: int) -> DocumentType | None:
    return next(
        (segment.dominant_type for segment in answer.segments if segment.start_page <= page_number <= segment.end_page),
        None,
    )


def get_contained_types(segment: Segment) -> set[DocumentType]:
    """Return a segment's PRIMARY and EMBEDDED_RAW types, except the dominant type."""
    return {
        presence.document_type
        for presence in segment.segment_composition
        if presence.presence_level in (PresenceLevel.PRIMARY, PresenceLevel.EMBEDDED_RAW)
        and presence.document_type is not segment.dominant_type
    }


def _select_last_segment_pages(answer: ClassificationOutput, pages: Sequence[Page]) -> list[Page]:
    last_page_number = pages[-1].page_num
    first_page_number = max(
        (
            segment.start_page
            for segment in answer.segments
            if segment.start_page <= last_page_number <= segment.end_page
        ),
        default=last_page_number,
    )
    return [page for page in pages if page.page_num >= first_page_number]


def _drop_blank_pages(pages: Iterable[Page]) -> list[Page]:
    return [page for page in pages if page.text.strip()]


def _sum_weights(signs: Iterable[BoundarySign]) -> float:
    return sum(sign.weight for sign in signs)


def _build_boundary_issue(segment: Segment, page: Page, signs: Sequence[BoundarySign], *, is_beginning: bool) -> Issue:
    relevant_signs = sorted(
        (sign for sign in signs if (sign.weight > 0) is is_beginning), key=lambda sign: -abs(sign.weight)
    )
    description = ", ".join(sign.description for sign in relevant_signs[:3]) or "shows no sign that a document begins"
    page_number, segment_index = page.page_num, segment.segment_index
    quotes = [
        *(sign.quote for sign in relevant_signs),
        *(line[:_MAX_TITLE_LENGTH] for line in _split_lines(page.text)[:_HEAD_LINES]),
    ]
    return Issue.create(
        "V2",
        BOUNDARY_DOUBT_CODE,
        IssueSeverity.MAJOR,
        f"Page {page_number} seems to begin another document inside segment {segment_index}: it {description}"
        if is_beginning
        else f"Segment {segment_index} seems to begin in the middle of a document: page {page_number} {description}",
        location="segments",
        suggested_fix=f"Check whether page {page_number} continues the page before",
        segment_index=segment_index,
        page=page_number,
        quote=next((quote for quote in quotes if quote and not has_patient_identifier(quote, page)), None),
        facts={"doubt": "new" if is_beginning else "continues", "sign": description.partition(", ")[0]},
    )


# ---------------------------------------------------------------------------------------------- signs on the pages


@cache_document_text(512)
def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())


@cache_document_text(512)
def find_pagination_marks(text: str) -> tuple[tuple[int, int, str], ...]:
    """Find each "page i of n" at the top and bottom of a page: (i, n, line)."""
    lines = _split_lines(text)
    edge_lines = lines if len(lines) <= 2 * _FOOT_LINES else (*lines[:_FOOT_LINES], *lines[-_FOOT_LINES:])
    return tuple(
        (int(match[1] or match[3]), int(match[2] or match[4]), line)
        for line in edge_lines
        for match in islice(PATTERNS["page_count"].finditer(line), _MAX_COUNTS_A_LINE)
    )


def find_running_pagination(bundle: DocumentBundle) -> frozenset[tuple[int, int]]:
    """Find page numbering of the whole file: (number − page, total).

    The print-out of a whole record has such counts; they are no sign of a document.
    """
    pages = _drop_blank_pages(bundle.pages)
    occurrences = Counter(
        (number - page.page_num, total)
        for page in pages
        for number, total in {page_count[:2] for page_count in find_pagination_marks(page.text)}
    )
    return frozenset(key for key, times in occurrences.items() if times >= max(_MIN_RUNNING_PAGES, len(pages)))


def _compare_pagination_marks(
    previous_pages: Sequence[Page],
    page: Page,
    total_pages: int,
    running_pagination: Container[tuple[int, int]] = frozenset(),
) -> Iterator[BoundarySign]:
    """Yield the sign of the documents' own page counts; those of the file are ignored."""

    def find_own_counts(counted_page: Page) -> list[tuple[int, int, str]]:
        return [
            (number, total, line)
            for number, total, line in find_pagination_marks(counted_page.text)
            if (number, total) != (counted_page.page_num, total_pages)
            and (number - counted_page.page_num, total) not in running_pagination
        ]

    page_counts, previous_counts = find_own_counts(page), find_own_counts(previous_pages[-1])
    previous_numbers = {page_count[:2] for page_count in previous_counts}
    continuing_count = next(
        (
            page_count
            for page_count in page_counts
            if page_count[0] > 1 and (page_count[0] - 1, page_count[1]) in previous_numbers
        ),
        None,
    )
    first_count = next((page_count for page_count in page_counts if page_count[0] == 1), None)
    if continuing_count:
        number, total, line = continuing_count
        yield BoundarySign(-4.0, f"is page {number} of {total}, and the page before is {number - 1} of {total}", line)
    elif first_count:
        # an annex counts its own pages, but has the report's running line
        is_annex = any(_is_same_running_line(line, first_count[2]) for _, _, line in previous_counts)
        is_weak = first_count[1] == 1 or any(number == 1 for number, _ in previous_numbers)
        weight = 1.0 if is_annex else 2.0 if is_weak else 3.0
        yield BoundarySign(weight, f"is page 1 of {first_count[1]} by its own count", first_count[2])
    elif previous_counts and previous_counts[-1][0] == previous_counts[-1][1] and not page_counts:
        total = previous_counts[-1][1]
        # each page of the document was counted, from the first to the last, but a single page may leave an annex out
        is_counted_whole = 1 < total <= len(previous_pages) and all(map(find_own_counts, previous_pages))
        yield BoundarySign(3.0 if is_counted_whole else 2.0, f"comes after page {total} of {total}")


def _is_same_running_line(line: str, next_line: str) -> bool:
    letters, next_letters = (re.sub(r"[\W\d_]+", "", text).casefold() for text in (line, next_line))
    return len(letters) >= _MIN_RUNNING_LINE_LETTERS and fuzz.ratio(letters, next_letters) >= _MIN_SIMILARITY_PERCENT


def is_continuation_page_of_document(
    previous_pages: Sequence[Page], page: Page, total_pages: int, *, after_interruption: bool = False
) -> bool:
    """Return True if a page continues a document, whatever patient it names.

    ``after_interruption``: another patient's pages lie between; then the page continues unless a document begins on it.
    """
    if not previous_pages:
        return False
    signs = [
        *_compare_pagination_marks(previous_pages, page, total_pages),
        *_compare_page_heads(previous_pages, page),
        # a signature ends no report whose next page says that it continues it
        *(sign for sign in _compare_page_ends(previous_pages[-1], page) if sign.weight < 0),
    ]
    return (
        _sum_weights(signs) < BEGINNING_THRESHOLD
        if after_interruption
        else _sum_weights(signs) <= CONTINUATION_THRESHOLD
    )


def _compare_patients(previous_pages: Sequence[Page], page: Page) -> Iterator[BoundarySign]:
    """Yield a sign if the page names another patient than the last named one."""
    identity = get_page_patient_identity(page)
    previous_identity = next(filter(None, map(get_page_patient_identity, reversed(previous_pages))), None)
    if identity is None or previous_identity is None:
        return
    comparison = compare_page_patients(previous_identity, identity)
    # Files are stamped with numbers: a number that is on the pages of both sides does not show another patient.
    is_other_number = have_disjoint_record_numbers(previous_identity.identifiers, identity.identifiers) and not any(
        number.kind == "mrn" and number.value in text
        for numbers, text in (
            (identity.identifiers, "\n".join(previous_page.text for previous_page in previous_pages)),
            (previous_identity.identifiers, page.text),
        )
        for number in numbers
    )
    if comparison.relation is SamePersonVerdict.DIFFERENT or (is_other_number and not comparison.agreeing):
        yield BoundarySign(3.0, "is about another patient")
    elif comparison.differing and not comparison.agreeing:
        yield BoundarySign(1.0, "may be about another patient")


def _compare_accession_numbers(previous_pages: Sequence[Page], page: Page) -> Iterator[BoundarySign]:
    numbers, previous_numbers = (
        {
            number.normal: number.value
            for compared_page in pages
            for number in compared_page.identifiers
            if number.kind == "accession" and not PATTERNS["sequence_name"].match(number.value)
        }
        for pages in ([page], previous_pages)
    )
    if not numbers or not previous_numbers:
        return
    if not previous_numbers.keys().isdisjoint(numbers):
        yield BoundarySign(-2.0, "has the same accession number as the pages before")
        return
    # a report of several specimens also names the other specimens' numbers
    previous_text = "\n".join(previous_page.text for previous_page in previous_pages)
    if not any(value in previous_text for value in numbers.values()):
        yield BoundarySign(3.0, "has another accession number", next(iter(numbers.values())))


def _compare_dates(previous_pages: Sequence[Page], page: Page) -> Iterator[BoundarySign]:
    dates = _map_report_dates_to_text(page) or _map_head_dates_to_text(page)
    previous_dates = next(
        filter(
            None,
            (
                _map_report_dates_to_text(previous) or _map_head_dates_to_text(previous)
                for previous in reversed(previous_pages)
            ),
        ),
        None,
    )
    if not dates or not previous_dates:
        return
    if not previous_dates.keys().isdisjoint(dates):
        yield BoundarySign(-1.0, "has the same date as the page before")
        return
    previous_text = "\n".join(previous_page.text for previous_page in previous_pages)
    is_cross_reference = any(written in page.text for written in previous_dates.values()) or any(
        written in previous_text for written in dates.values()
    )
    if not is_cross_reference:
        # a date below a letterhead or title is a stronger sign than a date above results
        first_lines = _split_lines(page.text)[:_TITLE_LINES]
        known_lines = {_normalise_line(line) for line in _split_lines(previous_pages[0].text)[:_TITLE_LINES]}
        has_head = any(_is_title(line) or _normalise_line(line) in known_lines for line in first_lines)
        yield BoundarySign(2.0 if has_head or _map_report_dates_to_text(page) else 1.0, "has another date")


def _map_report_dates_to_text(page: Page) -> dict[str, str]:
    return {date.normal: date.value for date in page.identifiers if date.kind == "report_date"}


def _map_head_dates_to_text(page: Page) -> dict[str, str]:
    """Return the dates in the first lines, except birth dates: ISO 8601 → as written."""
    birth_dates = {birth.normal for birth in page.identifiers if birth.kind == "date_of_birth"}
    written_dates = [
        match.group()
        for line in _split_lines(page.text)[:_HEAD_LINES]
        if not PATTERNS["birth"].search(line) or len(PATTERNS["date"].findall(line)) > 1
        for match in PATTERNS["date"].finditer(line)
    ]
    parsed_dates = {date.iso: written for written in written_dates if (date := parse_written_date(written))}
    return {iso: written for iso, written in parsed_dates.items() if iso not in birth_dates}


def _compare_sections(previous_pages: Sequence[Page], page: Page) -> Iterator[BoundarySign]:
    headings = _find_headings(page.text)
    previous_headings = [_find_headings(previous_page.text) for previous_page in previous_pages]
    repeated = headings & frozenset().union(*previous_headings)
    # headings that are on every page are running headers or labels of a form
    if len(previous_pages) > 1:
        repeated -= frozenset.intersection(*previous_headings)
    if len(repeated) >= _MIN_REPEATED_HEADINGS:
        weight = 2.0 if len(repeated) > _MIN_REPEATED_HEADINGS else 1.0
        yield BoundarySign(weight, "repeats headings of the pages before")
    conclusions = _find_conclusions(page.text)
    repeated_conclusions = conclusions & frozenset().union(
        *(_find_conclusions(previous_page.text) for previous_page in previous_pages)
    )
    if repeated_conclusions:
        yield BoundarySign(
            1.0 if _is_note(previous_pages[0]) else 2.0,
            f"has a second conclusion ({', '.join(sorted(repeated_conclusions))})",
        )
    headings_before = [match[1] for match in PATTERNS["heading"].finditer(previous_pages[-1].text)]
    first_line = next(iter(_split_lines(page.text)), "")
    if headings_before and PATTERNS["conclusion"].search(headings_before[-1]) and _is_heading_like(first_line):
        yield BoundarySign(1.0, "comes after a conclusion", first_line)


@cache_document_text(512)
def _find_conclusions(text: str) -> frozenset[str]:
    return frozenset(match[1].casefold() for match in PATTERNS["conclusion_heading"].finditer(text))


@cache_document_text(512)
def _find_headings(text: str) -> frozenset[str]:
    """Find headings below the page's head, without labels that repeat in rows."""
    counts = Counter(match[1].strip().casefold() for match in PATTERNS["heading"].finditer(text))
    head = "\n".join(_split_lines(text)[: _HEAD_LINES // 2]).casefold()
    return frozenset(heading for heading, count in counts.items() if count == 1 and heading not in head)


def _is_heading_like(line: str) -> bool:
    long_words = [word for word in line.split() if len(word) > 3 and word[0].isalpha()]
    return (
        0 < len(line.split()) <= _MAX_HEADING_WORDS
        and line[-1] not in ".,;"
        and all(word[0].isupper() for word in long_words)
    )


def _compare_page_heads(previous_pages: Sequence[Page], page: Page) -> Iterator[BoundarySign]:
    """Yield signs of a letterhead, title or first words that are new in the document."""
    known_lines = {
        _normalise_line(line)
        for previous_page in previous_pages
        for line in _split_lines(previous_page.text)[:_HEAD_LINES]
    }
    head_lines = _split_lines(page.text)[:_HEAD_LINES]
    new_lines = [line for line in head_lines if _normalise_line(line) not in known_lines]
    # an address that the page before has is a running header; one that only the document's first page has may begin
    # another document
    last_head_lines = {_normalise_line(line) for line in _split_lines(previous_pages[-1].text)[:_HEAD_LINES]}
    address = next(
        (
            line
            for line in head_lines[:4]
            if PATTERNS["address"].search(line) and _normalise_line(line) not in last_head_lines
        ),
        None,
    )
    is_dated = bool(_map_report_dates_to_text(page)) and not _map_report_dates_to_text(previous_pages[-1])
    title = next((line for line in new_lines[:6] if _is_title(line)), None)
    opening = next((line[:_MAX_TITLE_LENGTH] for line in new_lines[:4] if PATTERNS["opening"].match(line)), None)
    head_signs = (
        BoundarySign(3.0 if is_dated else 2.0, "has a new letterhead", address),
        BoundarySign(2.0, "has a title", title),
        BoundarySign(1.5, "begins with words that usually open a document", opening),
    )
    yield from (sign for sign in head_signs if sign.quote)
    if any(PATTERNS["continued"].search(line) for line in head_lines):
        yield BoundarySign(-3.0, "says that it is continued")


def _normalise_line(line: str) -> str:
    return re.sub(r"\W+", "", line).casefold()


def _is_title(line: str) -> bool:
    """Return True if the line is short and capitalised like a title."""
    if len(line) > _MAX_TITLE_LENGTH or not PATTERNS["title"].fullmatch(line):
        return False
    long_words = [word for word in line.split() if len(word) > 3 and word[0].isalpha()]
    return sum(word[0].isupper() for word in long_words) >= max(1, len(long_words) - 1)


def _compare_page_ends(previous_page: Page, page: Page) -> Iterator[BoundarySign]:
    tail = "\n".join(_split_lines(get_body_text(previous_page))[-_FOOT_LINES:])
    if PATTERNS["closing"].search(tail):
        yield BoundarySign(1.0, "comes after a signature or greeting")
    first_text = next(
        (block.text for block in page.visible_blocks if not block.furniture and block.text.strip()), page.text
    )
    if first_text.lstrip()[:1].islower() and tail and tail.rstrip()[-1:] not in ".:!?":
        yield BoundarySign(-3.0, "begins in the middle of a sentence", first_text.strip()[:_MAX_TITLE_LENGTH])


def _is_note(page: Page) -> bool:
    return measure_type_signs_on_pages([page]).strongest_type is DocumentType.CLINICAL_NOTE


def _compare_text_forms(
    previous_pages: Sequence[Page], page: Page, contained_types: Container[DocumentType]
) -> Iterator[BoundarySign]:
    """Yield a sign if the text changes to the signs of another type.

    ``contained_types`` are not another type.
    """
    page_forms, previous_forms = measure_type_signs_on_pages([page]), measure_type_signs_on_pages(previous_pages)
    new_type, old_type = page_forms.strongest_type, previous_forms.strongest_type
    if new_type is None or old_type is None or new_type is old_type or new_type in contained_types:
        return
    lead = min(page_forms[new_type] - page_forms[old_type], previous_forms[old_type] - previous_forms[new_type])
    # notes contain pages of results and medicines and whole reports, but reports contain no notes
    is_copied = old_type is DocumentType.CLINICAL_NOTE or _is_note(previous_pages[0])
    example = page_forms.find_strongest_sign_match(new_type, [page])
    if lead >= _STRONG_FORM_LEAD and page_forms[new_type] >= 3 * page_forms[old_type] and not is_copied:
        yield BoundarySign(3.0, f"looks like {new_type.value}, unlike the pages before", example.quote)
    elif lead >= _WEAK_FORM_LEAD and page_forms[new_type] >= 2 * page_forms[old_type]:
        yield BoundarySign(
            1.0 if is_copied else 2.0, f"looks more like {new_type.value} than the pages before", example.quote
        )
