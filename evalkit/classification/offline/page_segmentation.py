"""Page segmentation: boundaries between the documents of a file.

At each page break, signs speak for or against a new document; their weights were learned (``weights.json``). The pages
of a document are of one type, so a change of type speaks for a new document too. A hidden Markov model whose states
are the types combines both: summed over all ways to divide the file and to type its documents, it gives the
probability of a new document at each page break.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from evalkit.classification.offline.lexicon import PATTERNS, LexiconReading
from evalkit.classification.offline.type_scoring import ScoredPage
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import IdentifierKind, Page
from evalkit.documents.identity.file_persons import compare_page_patients, get_page_patient_identity
from evalkit.documents.identity.same_person import have_disjoint_record_numbers

#: Lexicon score below which a page is uninformative and joins its neighbours' document.
MIN_PAGE_SCORE = 1.0
#: Letters and digits, in bytes, from which an uninformative page is unreadable for the model instead of nearly empty.
#: Uninformative pages of the known texts have at most 217.
_MUCH_TEXT_BYTES = 250
#: Probability from which a page begins a document.
BEGINNING_PROBABILITY = 0.5
#: Probabilities, both included, at which a person must judge the page break. With this range one in eleven rightly
#: classified test files has a doubt, and one in four wrongly classified ones; from 0.1 to 0.9 it would be one in five
#: rightly classified files.
_DOUBTFUL_RANGE = (0.35, 0.9)

_MIN_BEGINNING_WEIGHT = 3.0
_MIN_TYPE_PROBABILITY = 0.002
_SHORT_PAGE_END, _FULL_PAGE_END, _TOO_FEW_PAGES = 0.6, 0.82, 2
_SHORT_LINE_LENGTH = 40
_TYPE_SIZE_TOLERANCE, _MARGIN_TOLERANCE, _WORD_SAMPLE_STEP = 0.06, 0.015, 8
_BEGINNING_SIGN_IDS = frozenset(
    {
        "title", "letterhead-organisation", "letterhead-address", "patient-block", "record-number", "opening-section",
        "salutation", "cover-sheet",
    }
)  # fmt: skip
_PERSON_IDENTIFIER_KINDS: frozenset[IdentifierKind] = frozenset({"patient", "date_of_birth", "mrn"})

#: All signs at a page break, with the weights (log odds for a new document) used before any were learned.
JOIN_SIGNS: Mapping[str, float] = {
    "always": -3.0,
    "title": 2.0,
    "title-alone": -0.5,
    "letterhead-organisation": 1.0,
    "letterhead-address": 1.0,
    "patient-block": 1.0,
    "record-number": 1.0,
    "opening-section": 1.0,
    "salutation": 2.0,
    "cover-sheet": 3.0,
    "cover-sheet-before": 3.0,
    "signed-off-before": 1.0,
    "count-begins": 2.5,
    "count-goes-on": -4.0,
    "count-later": -1.0,
    "count-ended-before": 1.0,
    "other-record": 1.5,
    "same-record": -3.0,
    "other-person": 5.0,
    "same-person": -0.5,
    "named-in-strip": -0.5,
    "strip-alone": -1.0,
    "other-date": 1.0,
    "same-date": -0.5,
    "mid-sentence": -2.0,
    "sentence-open-before": -0.5,
    "list-goes-on": -1.5,
    "continued": -2.0,
    "short-before": 1.0,
    "full-before": -1.0,
    "same-top-line": -1.0,
    "same-furniture": -0.5,
    "other-furniture": 0.5,
    "furniture-begins": 0.5,
    "furniture-ends": 0.0,
    "other-type-size": 1.0,
    "other-margin": 0.5,
}


@dataclass(frozen=True)
class PageTransition:
    """Page break between two pages that both have informative text."""

    page_num: int
    """Number of the page after the break."""
    signs: Mapping[str, float]
    """Signs at the break: name of ``JOIN_SIGNS`` → 1."""
    probability: float
    """Probability that a document begins on ``page_num``."""

    @property
    def is_doubtful(self) -> bool:
        """True if an expert must decide whether a document begins on the page."""
        return _DOUBTFUL_RANGE[0] <= self.probability <= _DOUBTFUL_RANGE[1]


@dataclass(frozen=True)
class PageSegmentation:
    """Division of a file's pages into documents, with the page breaks' probabilities."""

    document_index_ranges: tuple[tuple[int, int], ...]
    """Page indices (first, end exclusive) of each document; every page is in exactly one."""
    transitions: tuple[PageTransition, ...]
    """Page break before each informative page except the first."""
    readability_change_pages: tuple[int, ...]
    """Numbers of the pages on which the text changes between readable and unreadable for the model."""


def segment_pages(pages: Sequence[ScoredPage]) -> PageSegmentation:
    """Divide the pages of a file into documents."""
    if not pages:
        return PageSegmentation((), (), ())
    model_weights = pages[0].model_weights
    informative_indices = [index for index, page in enumerate(pages) if not is_uninformative(page.lexicon_reading)]
    signs_by_join = collect_transition_signs(
        [pages[index].lexicon_reading for index in informative_indices], len(pages)
    )
    log_odds = [
        math.fsum(model_weights.transition_weights.get(name, 0.0) * value for name, value in join_signs.items())
        for join_signs in signs_by_join
    ]
    opinions = [compute_damped_type_log_ratios(pages[index]) for index in informative_indices]
    probabilities = compute_beginning_probabilities(opinions, log_odds, model_weights.page_type_influence)
    joins = tuple(
        PageTransition(pages[index].lexicon_reading.page.page_num, join_signs, probability)
        for index, join_signs, probability in zip(informative_indices[1:], signs_by_join, probabilities, strict=True)
    )
    beginning_indices = {
        index
        for index, join in zip(informative_indices[1:], joins, strict=True)
        if join.probability >= BEGINNING_PROBABILITY
    }
    change_indices = _find_readability_change_indices(pages)
    start_indices = sorted({0} | beginning_indices | change_indices)
    return PageSegmentation(
        tuple(zip(start_indices, [*start_indices[1:], len(pages)], strict=True)),
        joins,
        tuple(pages[index].lexicon_reading.page.page_num for index in sorted(change_indices)),
    )


def is_uninformative(reading: LexiconReading) -> bool:
    """Return True if the lexicon finds almost nothing on the page.

    Such a page, for example a blank one, joins its neighbours' document.
    """
    return (
        sum(reading.scores.values()) < MIN_PAGE_SCORE
        and sum(sign.weight for sign in reading.beginning_signs) < _MIN_BEGINNING_WEIGHT
    )


def _find_readability_change_indices(pages: Sequence[ScoredPage]) -> set[int]:
    """Return the indices of pages where readable text changes to unreadable or back.

    Text that the built-in model cannot read, such as another language, must not get the type of its neighbours.
    """
    readings = [page.lexicon_reading for page in pages]
    has_much_to_say = [
        (index, not is_uninformative(reading))
        for index, reading in enumerate(readings)
        if not is_uninformative(reading) or _has_much_text(reading)
    ]
    return {
        index
        for (_, was_informative), (index, is_informative) in pairwise(has_much_to_say)
        if is_informative is not was_informative
    }


def _has_much_text(reading: LexiconReading) -> bool:
    text = reading.page.text
    furniture_size = sum(_count_letter_bytes(text[start:end]) for start, end in reading.furniture_spans)
    return _count_letter_bytes(text) - furniture_size >= _MUCH_TEXT_BYTES


def _count_letter_bytes(text: str) -> int:
    # bytes of UTF-8, because one Chinese character says as much as a short word
    return len("".join(filter(str.isalnum, text)).encode(errors="surrogatepass"))


def compute_damped_type_log_ratios(page: ScoredPage) -> tuple[float, ...]:
    """Return ln(5 p) of each type's probability p on the page, damped.

    Above 0 for types that are more probable than by chance; nearer to 0 for pages of little or unknown text.
    """
    type_scores = page.type_scores
    probabilities = (
        max(probability, _MIN_TYPE_PROBABILITY) for probability in type_scores.probabilities_undamped.values()
    )
    return tuple(type_scores.damping * math.log(probability * len(FIVE_TYPES)) for probability in probabilities)


def compute_beginning_probabilities(
    type_log_ratios_by_page: Sequence[Sequence[float]], transition_log_odds: Sequence[float], page_type_influence: float
) -> list[float]:
    """Compute the probability of a new document at each page break.

    Args:
        type_log_ratios_by_page: for each page and type, the result of ``compute_damped_type_log_ratios``.
        transition_log_odds: for each page break, the summed weights of its signs; one fewer than pages.
        page_type_influence: factor of the types' log ratios, 0 to 1.

    Forward-backward algorithm (Rabiner, Proceedings of the IEEE 77, 1989). A new document is of any type with equal
    probability, the previous type included; within a document the type stays.
    """
    type_fits = [[math.exp(page_type_influence * number) for number in row] for row in type_log_ratios_by_page]
    odds_by_join = [math.exp(max(-30.0, min(30.0, number))) for number in transition_log_odds]
    type_count = len(FIVE_TYPES)
    forward = [_scale_to_sum_one(type_fits[0])] if type_fits else []
    for type_fit, join_odds in zip(type_fits[1:], odds_by_join, strict=True):
        new_document = join_odds * sum(forward[-1]) / type_count
        forward.append(
            _scale_to_sum_one(
                [(same_type + new_document) * number for same_type, number in zip(forward[-1], type_fit, strict=True)]
            )
        )
    probabilities: list[float] = []
    backward = [1.0] * type_count
    for index in range(len(odds_by_join) - 1, -1, -1):
        backward_fits = [type_fit * number for type_fit, number in zip(type_fits[index + 1], backward, strict=True)]
        new_document = odds_by_join[index] * sum(forward[index]) * sum(backward_fits) / type_count
        same_document = sum(
            forward_number * number for forward_number, number in zip(forward[index], backward_fits, strict=True)
        )
        probabilities.append(new_document / (new_document + same_document))
        backward = _scale_to_sum_one(
            [number + odds_by_join[index] * sum(backward_fits) / type_count for number in backward_fits]
        )
    return probabilities[::-1]


def _scale_to_sum_one(values: Sequence[float]) -> list[float]:
    total = sum(values)
    return [value / total for value in values]


# --------------------------------------------------------------------------------------------- signs at a page break


def collect_transition_signs(readings: Sequence[LexiconReading], total_pages: int) -> list[dict[str, float]]:
    """Collect the signs at each page break: name of ``JOIN_SIGNS`` → 1.

    ``total_pages`` is the number of pages of the whole file.
    """
    packet_counts, stamps = _find_packet_pagination(readings, total_pages), _find_furniture_on_all_pages(readings)
    counts_by_page = [
        [
            page_count
            for page_count in page_reading.pagination_marks
            if _compute_pagination_offset(page_reading.page, page_count) not in packet_counts
        ]
        for page_reading in readings
    ]
    return [
        dict.fromkeys(
            [
                *_find_transition_signs(previous_reading, reading, previous_marks, pagination_marks),
                *_find_layout_signs(previous_reading.page, reading.page, stamps),
            ],
            1.0,
        )
        for previous_reading, reading, previous_marks, pagination_marks in zip(
            readings, readings[1:], counts_by_page, counts_by_page[1:], strict=False
        )
    ]


def _compute_pagination_offset(page: Page, page_count: tuple[int, int]) -> tuple[int, int]:
    return page_count[0] - page.page_num, page_count[1]


def _find_packet_pagination(readings: Sequence[LexiconReading], total_pages: int) -> set[tuple[int, int]]:
    """Find page counts of the whole file: they appear on all pages or are its length."""
    occurrences = Counter(
        _compute_pagination_offset(reading.page, count)
        for reading in readings
        for count in set(reading.pagination_marks)
    )
    return {key for key, times in occurrences.items() if key == (0, total_pages) or times >= max(2, len(readings))}


def _find_transition_signs(
    previous_reading: LexiconReading,
    reading: LexiconReading,
    previous_marks: Sequence[tuple[int, int]],
    pagination_marks: Sequence[tuple[int, int]],
) -> list[str]:
    """Return the names of the text's signs: letterheads, counts, persons and more."""
    known_lines = {sign.line for sign in previous_reading.beginning_signs} | set(previous_reading.top_lines)
    new_sign_ids = {sign.id for sign in reading.beginning_signs if sign.line not in known_lines} & _BEGINNING_SIGN_IDS
    is_numbered = bool(previous_reading.record_numbers and reading.record_numbers)
    shares_number = not previous_reading.record_numbers.isdisjoint(reading.record_numbers)
    is_present = {
        "always": True,
        "title-alone": new_sign_ids == {"title"},
        "signed-off-before": previous_reading.is_signed_off,
        "cover-sheet-before": any(sign.id == "cover-sheet" for sign in previous_reading.beginning_signs),
        "same-record": is_numbered and shares_number,
        "other-record": is_numbered and not shares_number,
        **_detect_pagination_signs(previous_marks, pagination_marks),
        **_detect_identity_signs(previous_reading.page, reading, new_sign_ids),
        **_detect_text_signs(previous_reading, reading),
    }
    return [*sorted(new_sign_ids), *(name for name, is_there in is_present.items() if is_there)]


def _detect_pagination_signs(
    previous_marks: Sequence[tuple[int, int]], pagination_marks: Sequence[tuple[int, int]]
) -> dict[str, bool]:
    """Return the signs of page counts: page 1 of 3 begins, page 2 of 3 goes on."""
    is_continuing = any((number - 1, total) in previous_marks for number, total in pagination_marks if number > 1)
    is_first = any(number == 1 for number, _ in pagination_marks)
    return {
        "count-goes-on": is_continuing,
        "count-begins": is_first and not is_continuing,
        "count-later": bool(pagination_marks) and not is_first and not is_continuing,
        "count-ended-before": any(number == total for number, total in previous_marks),
    }


def _detect_identity_signs(previous_page: Page, reading: LexiconReading, new_sign_ids: set[str]) -> dict[str, bool]:
    page = reading.page
    is_same_person, is_other_person = _detect_same_or_other_patient(previous_page, page)
    previous_date, report_date = _get_report_date(previous_page), _get_report_date(page)
    person_values = [identifier.value for identifier in page.identifiers if identifier.kind in _PERSON_IDENTIFIER_KINDS]
    return {
        "same-person": is_same_person,
        "other-person": is_other_person,
        "same-date": report_date is not None and previous_date == report_date,
        "other-date": None not in (report_date, previous_date) and previous_date != report_date,
        "strip-alone": bool(person_values)
        and report_date is None
        and new_sign_ids.isdisjoint({"patient-block", "title"}),
        "named-in-strip": _has_furniture_containing(page, person_values),
    }


def _detect_same_or_other_patient(previous_page: Page, page: Page) -> tuple[bool, bool]:
    """Return if both pages name the same patient, and if they name two patients.

    Both are False if a page names none, or if only record numbers could tell and one is in a header or footer.
    """
    previous_identity, identity = get_page_patient_identity(previous_page), get_page_patient_identity(page)
    if previous_identity is None or identity is None:
        return False, False
    comparison = compare_page_patients(previous_identity, identity)
    agreeing, differing = (
        {fact.fact for fact in facts} & {"name", "birth date"} for facts in (comparison.agreeing, comparison.differing)
    )
    if agreeing or differing:
        return bool(agreeing), not agreeing
    if _has_stamped_record_number(previous_page) or _has_stamped_record_number(page):
        return False, False
    is_other_number = have_disjoint_record_numbers(previous_identity.identifiers, identity.identifiers)
    return any(fact.fact == "record number" for fact in comparison.agreeing), is_other_number


def _get_report_date(page: Page) -> str | None:
    return next((identifier.normal for identifier in page.identifiers if identifier.kind == "report_date"), None)


def _has_stamped_record_number(page: Page) -> bool:
    """Return True if the page's record number is in a header or footer.

    Such a number may have been stamped when the file was put together.
    """
    return _has_furniture_containing(
        page, [identifier.value for identifier in page.identifiers if identifier.kind == "mrn"]
    )


def _has_furniture_containing(page: Page, texts: Sequence[str]) -> bool:
    return any(block.furniture and text in block.text for block in page.blocks for text in texts)


def _detect_text_signs(previous_reading: LexiconReading, reading: LexiconReading) -> dict[str, bool]:
    top_lines = reading.top_lines
    bottom_line = _get_last_line(previous_reading)
    first_lines = [PATTERNS["digits"].sub("#", lines[0]) for lines in (top_lines, previous_reading.top_lines) if lines]
    first_numbers = _find_list_numbers(top_lines[:2])
    last_numbers = _find_list_numbers(previous_reading.page.text.split("\n"))
    return {
        "mid-sentence": bool(top_lines) and top_lines[0][0].islower(),
        "sentence-open-before": len(bottom_line) > _SHORT_LINE_LENGTH
        and not PATTERNS["sentence_end"].search(bottom_line)
        and not previous_reading.is_signed_off,
        "list-goes-on": bool(first_numbers and last_numbers) and first_numbers[0] == last_numbers[-1] + 1,
        "continued": any(PATTERNS["continued"].search(line) for line in top_lines[:4]),
        "same-top-line": len(first_lines) == 2 and first_lines[0] == first_lines[1],
    }


def _find_list_numbers(lines: Iterable[str]) -> list[int]:
    return [int(match[1]) for line in lines if (match := PATTERNS["numbered_line"].match(line))]


def _get_last_line(reading: LexiconReading) -> str:
    body_texts = [block.text for block in reading.page.blocks if not (block.furniture or block.hidden)]
    return next((text.rsplit("\n", 1)[-1].strip() for text in reversed(body_texts) if text.strip()), "")


def _find_layout_signs(previous_page: Page, page: Page, packet_furniture_lines: AbstractSet[str]) -> list[str]:
    """Return the names of the layout signs: text end, headers, type size, margin."""
    text_end = _measure_text_bottom(previous_page)
    previous_furniture, page_furniture = (
        _collect_masked_furniture_lines(previous_page) - packet_furniture_lines,
        _collect_masked_furniture_lines(page) - packet_furniture_lines,
    )
    sizes = _measure_word_height(previous_page), _measure_word_height(page)
    margins = _measure_left_margin(previous_page), _measure_left_margin(page)
    is_present = {
        "short-before": text_end is not None and text_end < _SHORT_PAGE_END,
        "full-before": text_end is not None and text_end > _FULL_PAGE_END,
        "same-furniture": bool(previous_furniture & page_furniture),
        "other-furniture": bool(previous_furniture and page_furniture) and not previous_furniture & page_furniture,
        "furniture-begins": bool(page_furniture) and not previous_furniture,
        "furniture-ends": bool(previous_furniture) and not page_furniture,
        "other-type-size": min(sizes) > 0 and abs(sizes[0] - sizes[1]) > _TYPE_SIZE_TOLERANCE * max(sizes),
        "other-margin": min(margins) > 0 and abs(margins[0] - margins[1]) > _MARGIN_TOLERANCE,
    }
    return [name for name, is_there in is_present.items() if is_there]


def _measure_text_bottom(page: Page) -> float | None:
    """Measure where the page's text ends, 0 (top) to 1; None if unknown."""
    boxes = {block.box for block in page.blocks if not (block.furniture or block.hidden)}
    return max(box[3] for box in boxes) if len(boxes) > 1 else None


def _collect_masked_furniture_lines(page: Page) -> set[str]:
    """Return headers and footers with numbers masked; page counts alone are left out."""
    lines = (
        PATTERNS["masked_page_count"].sub("", PATTERNS["digits"].sub("#", block.text))
        for block in page.blocks
        if block.furniture
    )
    return {line for line in lines if any(map(str.isalpha, line))}


def _find_furniture_on_all_pages(readings: Sequence[LexiconReading]) -> AbstractSet[str]:
    """Find header and footer lines that are on all pages, and so are no sign."""
    if len(readings) <= _TOO_FEW_PAGES:
        return frozenset()
    return frozenset.intersection(*(frozenset(_collect_masked_furniture_lines(reading.page)) for reading in readings))


def _measure_word_height(page: Page) -> float:
    """Measure the median word height, in ten-thousandths of the page; 0 if no words."""
    heights = sorted(word[5] - word[3] for word in page.words[::_WORD_SAMPLE_STEP])
    return heights[len(heights) // 2] if heights else 0.0


def _measure_left_margin(page: Page) -> float:
    """Measure the median left edge of the blocks, 0 to 1; 0 if unknown."""
    left_edges = sorted(block.box[0] for block in page.blocks if not (block.furniture or block.hidden))
    return left_edges[len(left_edges) // 2] if len(set(left_edges)) > 1 else 0.0
