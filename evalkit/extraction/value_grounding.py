"""Search for extracted values on the page; a missing value becomes an issue.

An extractor claims a field's value and place. The claimed words are searched first, then any spelling with the same
normal form (``24410.00`` matches ``24,410.00``). The issue of a value that was not found describes the difference to
the most similar passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.documents.search import find_boxes_of_text_span
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.formats import FieldFormat, correct_misread_digits
from evalkit.extraction.patterns import get_pattern
from evalkit.grounding.locate import QuoteLocator, find_critical_doubtful_words, find_whole_word_spans
from evalkit.grounding.normalise import canonicalise
from evalkit.issue import Agent, Issue, IssueSeverity, QuoteVerdict

#: Most words of a value in a format other than text: "February 1, 2025" has 3.
_MAX_VALUE_WORDS = 4
#: Characters of the line that a quote includes on either side of the value.
_CONTEXT_CHARACTERS = 120
_PLAIN_FORMATS: frozenset[FieldFormat] = frozenset(("text", "pattern", "checkbox"))


@dataclass(frozen=True)
class FieldClaim:
    """An extractor's claim about the value of one field."""

    value: str | None
    """The claimed value; None: the document does not have the field."""
    raw: str | None = None
    """The page's words: the value itself, or a passage that contains it."""
    page: int | None = None
    confidence: float = 1.0
    is_ambiguous: bool = False
    span: tuple[int, int] | None = None
    """Start and end of the value in the page's text; None if the extractor does not know them."""
    entry_line_spans: tuple[tuple[int, int], ...] = ()
    """Start and end of each line in the page's text, for an entry of several lines; other text may lie between."""


def ground_claim(
    claim: FieldClaim,
    field: TemplateField,
    bundle: DocumentBundle,
    locator: QuoteLocator,
    page_numbers: Sequence[int],
    agent: Agent,
) -> tuple[FieldValue, Issue | None]:
    """Search for a claimed value on the pages; return the field, and any issue.

    A value that is not on the pages is not stored: the issue EXTRACTION-NOT-ON-PAGE reports it, as found by ``agent``.
    A value with a number, unit, sign, gene or code that OCR may have misread is ambiguous.
    A value that is not in the field's format is stored in its own words; the evaluator or grader reports it.
    """
    if claim.value is None or not claim.value.strip():
        status = FieldStatus.AMBIGUOUS if claim.is_ambiguous else FieldStatus.NOT_PRESENT
        return FieldValue(status=status, confidence=claim.confidence), None
    lines = _find_entry_line_places(claim, field, bundle, page_numbers)
    places = lines or list(islice(_iter_value_places(claim, field, bundle, locator, page_numbers), 1))
    if not places:
        return _build_absent_value_and_issue(claim, field, locator, page_numbers, agent)
    return _build_field_value(field, claim, places), None


def _build_field_value(field: TemplateField, claim: FieldClaim, places: Sequence[tuple[Page, int, int]]) -> FieldValue:
    value, (first_page, start, end) = claim.value or "", places[0]
    raw = "\n".join(page.text[start:end] for page, start, end in places)
    normal_value = normalise_on_page(field, raw, first_page) if field.format not in _PLAIN_FORMATS else None
    stored_value = normal_value or field.normalise(value) or " ".join(value.split())
    doubtful_words = [word for place in places for word in find_critical_doubtful_words(*place)]
    second_raw = raw
    for word in doubtful_words:
        second_raw = second_raw.replace(word.reading, word.second_reading or word.reading, 1)
    candidates = (stored_value, field.normalise(second_raw) or " ".join(second_raw.split()))
    return FieldValue(
        status=FieldStatus.AMBIGUOUS if claim.is_ambiguous or doubtful_words else FieldStatus.FOUND,
        value=stored_value,
        candidates=candidates if doubtful_words and second_raw != raw else (),
        raw=raw,
        page=first_page.page_num,
        quote=extract_passage(first_page, start, end),
        boxes=tuple(box for page, start, end in places for box in find_boxes_of_text_span(page, start, end)),
        confidence=claim.confidence,
    )


def has_day_first(text: str) -> bool:
    """Return True if the dates in a text can only have the day before the month.

    Also if those with dots of its last year are closer together so.

    >>> has_day_first("12.05.1988, 03.06.2025, 05.06.2025"), has_day_first("06.03.2025, 06.05.2025"), has_day_first("3/6/2025")
    (True, False, False)
    """
    if get_pattern("day_first_number").search(text) or get_pattern("month_first_number").search(text):
        return get_pattern("month_first_number").search(text) is None
    dates = re.findall(r"(?<![\d.])(\d\d?)\.(\d\d?)\.(\d{4})\b", text)
    last_dates = [
        (int(first), int(second)) for first, second, year in dates if year == max(dates, key=lambda date: date[2])[2]
    ]
    spreads = [max(numbers) - min(numbers) for numbers in zip(*last_dates, strict=True)]
    return bool(spreads) and spreads[1] < spreads[0]


def normalise_on_page(field: TemplateField, text: str, page: Page) -> str | None:
    """Normalise a field's text; a date has the day-month order of its page."""
    value = field.normalise(text)
    if value and field.format == "date" and get_pattern("either_order").fullmatch(text) and has_day_first(page.text):
        return f"{value[:4]}-{value[8:]}-{value[5:7]}"
    return value


def _find_entry_line_places(
    claim: FieldClaim, field: TemplateField, bundle: DocumentBundle, page_numbers: Sequence[int]
) -> list[tuple[Page, int, int]] | None:
    value = claim.value or ""
    if claim.entry_line_spans and claim.page in page_numbers:
        page = bundle.page(claim.page or 0)
        if _keep_letters(" ".join(page.text[slice(*row)] for row in claim.entry_line_spans)) == _keep_letters(value):
            return [(page, *row) for row in claim.entry_line_spans]
        return None
    line_texts = [line_text for line_text in re.split(r"[,\n]\s*", value) if line_text.strip()]
    if field.format != "text" or len(line_texts) < 2 or claim.span:
        return None
    for number in sorted(page_numbers, key=lambda number: (number != claim.page, number)):
        page = bundle.page(number)
        line_spans: list[tuple[Page, int, int]] = []
        for line_text in line_texts:
            # The lines of an entry are in order: search each line after the end of the line before.
            search_start = line_spans[-1][2] if line_spans else 0
            place = next(find_value_spans(line_text, field, page.text, search_start, len(page.text)), None)
            if place is None:
                break
            line_spans.append((page, *place))
        else:
            return line_spans
    return None


def _keep_letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", canonicalise(text))


def _iter_value_places(
    claim: FieldClaim, field: TemplateField, bundle: DocumentBundle, locator: QuoteLocator, page_numbers: Sequence[int]
) -> Iterator[tuple[Page, int, int]]:
    """Find the value at the claimed place, then in the quote, then on all pages.

    Yields page, start and end.
    """
    value, first_page = claim.value or "", _choose_first_page_number(claim, page_numbers)
    if claim.span and claim.page == first_page:
        page = bundle.page(first_page)
        if _is_same_value(page.text[slice(*claim.span)], value, field, is_ocr_text=page.status is PageStatus.OCR):
            yield page, *claim.span
    if claim.raw:
        located = locator.locate(claim.raw, first_page)
        if located.is_found or located.verdict in (QuoteVerdict.WRONG_PAGE, QuoteVerdict.UNCERTAIN):
            for page, start, end in located.page_spans:
                if page.page_num in page_numbers:
                    yield from ((page, *span) for span in _find_value_on_page(value, field, page, start, end))
    for number in sorted(page_numbers, key=lambda number: (number != first_page, number)):
        page = bundle.page(number)
        yield from ((page, *span) for span in _find_value_on_page(value, field, page, 0, len(page.text)))
    if field.format == "text":  # the page may have another line break or comma in it
        located = locator.locate(value, first_page)
        if (located.is_found or located.doubtful_words) and located.page_number in page_numbers:
            yield located.page_spans[0]


def _find_value_on_page(
    value: str, field: TemplateField, page: Page, start: int, end: int
) -> Iterator[tuple[int, int]]:
    return find_value_spans(value, field, page.text, start, end, is_ocr_text=page.status is PageStatus.OCR)


def find_value_spans(
    value: str, field: TemplateField, text: str, start: int, end: int, *, is_ocr_text: bool = False
) -> Iterator[tuple[int, int]]:
    """Find a value in ``text[start:end]``, also in other spellings.

    Yields start and end in ``text``. ``is_ocr_text``: also find numbers in which OCR read letters for digits.
    """
    if not (wanted_text := canonicalise(value)):
        return
    for first, last in find_whole_word_spans(wanted_text, text[start:end]):
        yield start + first, start + last
    if field.format in _PLAIN_FORMATS or (normal_value := field.normalise(value)) is None:
        return
    words = [match.span() for match in re.finditer(r"\S+", text[start:end])]
    for word_number, (first, _) in enumerate(words):
        for _, last in islice(words, word_number, word_number + _MAX_VALUE_WORDS):
            run = text[start + first : start + last]
            stripped = run.rstrip(".,;:")
            if normal_value in (
                field.normalise(stripped),
                field.normalise(correct_misread_digits(stripped, field.format)) if is_ocr_text else None,
            ):
                yield start + first, start + first + len(stripped)
                break


def _choose_first_page_number(claim: FieldClaim, page_numbers: Sequence[int]) -> int:
    """Return the page to search first: the claimed page, if it is one of these."""
    return (
        claim.page
        if claim.page is not None and claim.page in page_numbers
        else (page_numbers[0] if page_numbers else 0)
    )


def _is_same_value(text: str, value: str, field: TemplateField, *, is_ocr_text: bool) -> bool:
    wanted_text = canonicalise(value)
    if canonicalise(text) == wanted_text or canonicalise("".join(text.split())) == wanted_text:
        return True
    if field.format in _PLAIN_FORMATS:
        return field.format == "pattern" and field.normalise(" ".join(text.split())) == value
    normal_value = field.normalise(value) or value
    return normal_value == field.normalise(text) or (
        is_ocr_text and normal_value == field.normalise(correct_misread_digits(text, field.format))
    )


def _build_absent_value_and_issue(
    claim: FieldClaim, field: TemplateField, locator: QuoteLocator, page_numbers: Sequence[int], agent: Agent
) -> tuple[FieldValue, Issue]:
    """Build an empty value, and the issue that the claimed value is not on the page.

    The issue is a doubt (MAJOR, value ambiguous) if OCR may have misread the value, otherwise a blocker.
    """
    quote = claim.raw or claim.value or ""
    located = locator.locate(quote, _choose_first_page_number(claim, page_numbers))
    is_elsewhere = located.is_found or located.verdict is QuoteVerdict.WRONG_PAGE
    is_recognised = bool(located.page_spans) and located.page_spans[0][0].status is PageStatus.OCR
    is_doubtful = located.verdict is QuoteVerdict.UNCERTAIN and is_recognised
    if is_elsewhere and claim.raw and canonicalise(claim.value or "") not in canonicalise(claim.raw):
        explanation = "the quoted passage does not contain it"
    elif is_elsewhere:
        explanation = "it is on a page outside this document"
    else:
        explanation = located.difference_text or "no text on the pages is similar"
    issue = Issue.create(
        agent,
        "EXTRACTION-NOT-ON-PAGE",
        IssueSeverity.MAJOR if is_doubtful else IssueSeverity.BLOCKER,
        f"{field.description}: the value is not on the page; {explanation}",
        location=field.name,
        page=claim.page,
        quote=quote,
        verdict=located.verdict,
        difference=located.difference_text,
        found_page=located.page_number,
        boxes=located.boxes,
        facts={"field": field.description},
    )
    status = FieldStatus.AMBIGUOUS if is_doubtful else FieldStatus.NOT_PRESENT
    return FieldValue(status=status, page=located.page_number if is_doubtful else None), issue


def build_agent_failure(agent: Agent, reason: str | None, remedy: str) -> Issue:
    """Build the issue that reports that a model gave no usable answer.

    ``remedy``: what a person can do instead.
    """
    return Issue.create(
        agent,
        f"{agent.upper()}-AGENT-FAILED",
        IssueSeverity.BLOCKER,
        f"The {agent} could not answer: {reason or 'no reason given'}",
        suggested_fix=f"{remedy}, or run the document again",
    )


def extract_passage(page: Page, start: int, end: int) -> str:
    """Return the value's line, at most 120 characters on either side of the value."""
    first = max(page.text.rfind("\n", 0, start) + 1, start - _CONTEXT_CHARACTERS)
    line_end = page.text.find("\n", end)
    last = min(len(page.text) if line_end < 0 else line_end, end + _CONTEXT_CHARACTERS)
    if first and not page.text[first - 1].isspace():
        first = page.text.find(" ", first, start) + 1 or start
    if last < len(page.text) and not page.text[last].isspace():
        word_end = page.text.rfind(" ", end, last)
        last = word_end if word_end >= 0 else end
    return page.text[first:last]
