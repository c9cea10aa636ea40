"""Where one document ends and the next begins: a sequence of pages, read as a whole.

At each join of two pages signs speak for a new document or against it; their weights were learned (``weights.json``).
A document's pages are of one type, so a join is also where the types of the pages before and behind it differ. Both
are put together by the sum over all ways to cut and type the pages (a chain of pages whose state is the type): for
every join the probability that a document begins there. Nothing is cut that is not probable on the whole.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from evalkit.classification.judging import Heard, heed
from evalkit.classification.lexicon import PageReading
from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import Page
from evalkit.documents.identifiers import Kind

#: A page that says less belongs to what is around it.
THIN = 1.0
#: Of so many letters and digits a page that is thin is not empty: nobody can tell what it is. Thin pages of the known
#: texts have at most 217.
_MUCH = 250
#: From here on a join is a document's beginning.
BEGINS = 0.5
#: Between these, both in, a join is a person's to judge. Of drawn packets that are cut and typed rightly it doubts one in
#: eleven, of the others one in four; from 0.1 to 0.9 it would doubt one in five that are right.
_DOUBTFUL = (0.35, 0.9)

_START = 3.0
_LEAST_OPINION = 0.002
_SHORT, _FULL, _TOO_FEW = 0.6, 0.82, 2
_TYPE_SIZE, _MARGIN, _SOME_WORDS = 0.06, 0.015, 8
_STARTS = frozenset(
    {
        "title", "letterhead-organisation", "letterhead-address", "patient-block", "record-number", "opening-section",
        "salutation", "cover-sheet",
    }
)  # fmt: skip
_CONTINUED = re.compile(r"(?i)\bcont(?:inued|'d|d\.)")
_NUMBERED = re.compile(r"[ \t]*\(?(\d{1,2})[.)][ \t]")
_SENTENCE_END = re.compile(r"[.!?:;)\]\"'_]\s*$")
_DIGITS = re.compile(r"\d+")
_COUNT = re.compile(r"(?i)\b(?:page|pg|p)\b\.?\s*#(?:\s*(?:of|/)\s*#)?")
_PERSON: tuple[Kind, ...] = ("patient", "date_of_birth")

#: Every sign that there is, and what it would say for a new document (log odds) if nothing had been learned.
SIGNS: Mapping[str, float] = {
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
class Join:
    """Between a page and the last page before it that says anything."""

    page_num: int
    """Of the page behind it."""
    signs: Mapping[str, float]
    """What was seen there, of ``SIGNS``."""
    probability: float
    """That a document begins on the page."""

    @property
    def is_doubtful(self) -> bool:
        """Whether an expert must look at it."""
        return _DOUBTFUL[0] <= self.probability <= _DOUBTFUL[1]


@dataclass(frozen=True)
class Course:
    """How the pages follow each other."""

    runs: tuple[tuple[int, int], ...]
    """The documents as index ranges, end exclusive: every page once, in order."""
    joins: tuple[Join, ...]
    """One for each page but the first that says anything."""
    turns: tuple[int, ...]
    """Numbers of the pages, in order, on which text that says something and text that says nothing take turns."""


def course(pages: Sequence[Heard]) -> Course:
    """The documents among these pages."""
    if not pages:
        return Course((), (), ())
    known = pages[0].known
    telling = [index for index, page in enumerate(pages) if not is_thin(page.reading)]
    signs = join_signs([pages[index].reading for index in telling], len(pages))
    chances = [math.fsum(known.joins.get(name, 0.0) * value for name, value in one.items()) for one in signs]
    opinions = [opinion(pages[index]) for index in telling]
    probabilities = begin_probabilities(opinions, chances, known.page_types)
    joins = tuple(
        Join(pages[index].reading.page.page_num, one, probability)
        for index, one, probability in zip(telling[1:], signs, probabilities, strict=True)
    )
    begun = {index for index, join in zip(telling[1:], joins, strict=True) if join.probability >= BEGINS}
    turns = _turns(pages)
    starts = sorted({0} | begun | turns)
    return Course(
        tuple(zip(starts, [*starts[1:], len(pages)], strict=True)),
        joins,
        tuple(pages[index].reading.page.page_num for index in sorted(turns)),
    )


def is_thin(reading: PageReading) -> bool:
    """Hardly anything is said: such a page, a blank one for instance, belongs to what is around it."""
    return sum(reading.scores.values()) < THIN and sum(sign.weight for sign in reading.start_signs) < _START


def _turns(pages: Sequence[Heard]) -> set[int]:
    """Where pages that say something and pages of much text that says nothing take turns.

    What the embedded model cannot read, another language for instance, is not of the type that is beside it.
    """
    found: set[int] = set()
    before: bool | None = None
    for index, page in enumerate(pages):
        telling = not is_thin(page.reading)
        if not telling and not _is_much(page.reading):
            continue
        if before is not None and telling is not before:
            found.add(index)
        before = telling
    return found


def _is_much(reading: PageReading) -> bool:
    text = reading.page.text
    furniture = sum(_letters(text[start:end]) for start, end in reading.furniture)
    return _letters(text) - furniture >= _MUCH


def _letters(text: str) -> int:
    # In bytes: a Chinese letter is as much as a short word.
    return len("".join(filter(str.isalnum, text)).encode(errors="surrogatepass"))


def opinion(page: Heard) -> tuple[float, ...]:
    """How much better each type explains the page than the average of all: logarithms, less where it says little."""
    judgement = page.judgement
    heeded = heed(math.fsum(judgement.scores.values()))
    chances = (max(chance, _LEAST_OPINION) for chance in judgement.unweighed.values())
    return tuple(heeded * math.log(chance * len(DocumentType)) for chance in chances)


def begin_probabilities(
    opinions: Sequence[Sequence[float]], chances: Sequence[float], page_types: float
) -> list[float]:
    """For each join the probability that a document begins there.

    Args:
        opinions: for each page, for each type, how well it explains the page (a logarithm).
        chances: for each join, how much its signs speak for a new document (log odds); one fewer than pages.
        page_types: how much opinions count.

    The sum over all ways to cut and type, forwards and backwards (Rabiner, Proceedings of the IEEE 77, 1989). A new
    document may be of any type, the same too; within one the type stays.
    """
    fits = [[math.exp(page_types * one) for one in row] for row in opinions]
    odds = [math.exp(max(-30.0, min(30.0, one))) for one in chances]
    count = len(DocumentType)
    forward = [_scaled(fits[0])] if fits else []
    for fit, odd in zip(fits[1:], odds, strict=True):
        anew = odd * sum(forward[-1]) / count
        forward.append(_scaled([(stay + anew) * one for stay, one in zip(forward[-1], fit, strict=True)]))
    probabilities: list[float] = []
    behind = [1.0] * count
    for place in range(len(odds) - 1, -1, -1):
        seen = [fit * one for fit, one in zip(fits[place + 1], behind, strict=True)]
        anew = odds[place] * sum(forward[place]) * sum(seen) / count
        stays = sum(before * one for before, one in zip(forward[place], seen, strict=True))
        probabilities.append(anew / (anew + stays))
        behind = _scaled([one + odds[place] * sum(seen) / count for one in seen])
    return probabilities[::-1]


def _scaled(values: Sequence[float]) -> list[float]:
    whole = sum(values)
    return [value / whole for value in values]


# ------------------------------------------------------------------------------------------------ what stands at a join


def join_signs(readings: Sequence[PageReading], total_pages: int) -> list[dict[str, float]]:
    """What speaks at each join of these pages, 1 for what is there; names are of ``SIGNS``."""
    packet, stamps = _packet_counts(readings, total_pages), _stamps(readings)
    counts = [[count for count in one.numbering if _as_packet(one.page, count) not in packet] for one in readings]
    return [
        dict.fromkeys([*_signs(last, reading, had, has), *_layout_signs(last.page, reading.page, stamps)], 1.0)
        for last, reading, had, has in zip(readings, readings[1:], counts, counts[1:], strict=False)
    ]


def _as_packet(page: Page, count: tuple[int, int]) -> tuple[int, int]:
    return count[0] - page.page_num, count[1]


def _packet_counts(readings: Sequence[PageReading], total_pages: int) -> set[tuple[int, int]]:
    """Counts that run through all pages are the packet's own and say nothing of where documents begin."""
    seen = Counter(_as_packet(one.page, count) for one in readings for count in set(one.numbering))
    return {key for key, times in seen.items() if key == (0, total_pages) or times >= max(2, len(readings))}


def _signs(
    last: PageReading, reading: PageReading, had: Sequence[tuple[int, int]], has: Sequence[tuple[int, int]]
) -> Iterable[str]:
    yield "always"
    known = {sign.line for sign in last.start_signs} | set(last.top_lines)
    new = {sign.id for sign in reading.start_signs if sign.line not in known} & _STARTS
    yield from sorted(new)
    if new == {"title"}:
        yield "title-alone"
    if last.is_signed_off:
        yield "signed-off-before"
    if any(sign.id == "cover-sheet" for sign in last.start_signs):
        yield "cover-sheet-before"
    yield from _count_signs(had, has)
    if last.record_numbers and reading.record_numbers:
        yield "same-record" if last.record_numbers & reading.record_numbers else "other-record"
    yield from _identity_signs(last.page, reading, new)
    yield from _text_signs(last, reading)


def _count_signs(had: Sequence[tuple[int, int]], has: Sequence[tuple[int, int]]) -> Iterable[str]:
    """Page 1 of 3 begins a document, page 2 of 3 behind page 1 of 3 goes on."""
    if any((number - 1, of) in had for number, of in has if number > 1):
        yield "count-goes-on"
    elif any(number == 1 for number, _ in has):
        yield "count-begins"
    elif has:
        yield "count-later"
    if any(number == of for number, of in had):
        yield "count-ended-before"


def _identity_signs(last: Page, reading: PageReading, new: set[str]) -> Iterable[str]:
    before, now = ({one.kind: one.normal for one in page.identifiers} for page in (last, reading.page))
    shared: list[Kind] = [kind for kind in _PERSON if kind in before and kind in now]
    if not shared and not _is_stamped(last) and not _is_stamped(reading.page):
        shared = ["mrn"] if "mrn" in before and "mrn" in now else []
    if any(before[kind] == now[kind] for kind in shared):
        yield "same-person"
    elif shared:
        yield "other-person"
    if "report_date" in before and "report_date" in now:
        yield "same-date" if before["report_date"] == now["report_date"] else "other-date"
    if now and "report_date" not in now and not new & {"patient-block", "title"}:
        yield "strip-alone"
    if now and any(block.furniture and _names(block.text, reading.page) for block in reading.page.blocks):
        yield "named-in-strip"


def _is_stamped(page: Page) -> bool:
    """The record number is in a header or footer, where whoever put the packet together may have stamped one."""
    numbers = [one.value for one in page.identifiers if one.kind == "mrn"]
    return any(block.furniture and number in block.text for block in page.blocks for number in numbers)


def _names(text: str, page: Page) -> bool:
    return any(one.kind != "report_date" and one.value in text for one in page.identifiers)


def _text_signs(last: PageReading, reading: PageReading) -> Iterable[str]:
    top = reading.top_lines
    bottom = _last_line(last)
    if top and top[0][0].islower():
        yield "mid-sentence"
    if bottom and len(bottom) > 40 and not _SENTENCE_END.search(bottom) and not last.is_signed_off:
        yield "sentence-open-before"
    numbers = [int(match[1]) for line in last.page.text.split("\n") if (match := _NUMBERED.match(line))]
    first = next((int(match[1]) for line in top[:2] if (match := _NUMBERED.match(line))), None)
    if first is not None and numbers and first == numbers[-1] + 1:
        yield "list-goes-on"
    if any(_CONTINUED.search(line) for line in top[:4]):
        yield "continued"
    if top and last.top_lines and _DIGITS.sub("#", top[0]) == _DIGITS.sub("#", last.top_lines[0]):
        yield "same-top-line"


def _last_line(reading: PageReading) -> str:
    blocks = [block.text for block in reading.page.blocks if not (block.furniture or block.hidden)]
    return next((text.rsplit("\n", 1)[-1].strip() for text in reversed(blocks) if text.strip()), "")


def _layout_signs(last: Page, page: Page, stamps: AbstractSet[str]) -> Iterable[str]:
    end = _end(last)
    if end is not None:
        if end < _SHORT:
            yield "short-before"
        elif end > _FULL:
            yield "full-before"
    had, has = _furniture(last) - stamps, _furniture(page) - stamps
    if had & has:
        yield "same-furniture"
    elif had and has:
        yield "other-furniture"
    elif has:
        yield "furniture-begins"
    elif had:
        yield "furniture-ends"
    sizes, margins = (_type_size(last), _type_size(page)), (_margin(last), _margin(page))
    if min(sizes) and abs(sizes[0] - sizes[1]) > _TYPE_SIZE * max(sizes):
        yield "other-type-size"
    if min(margins) and abs(margins[0] - margins[1]) > _MARGIN:
        yield "other-margin"


def _end(page: Page) -> float | None:
    """Where the text ends, 0 (top) to 1; None where nobody knows."""
    boxes = {block.box for block in page.blocks if not (block.furniture or block.hidden)}
    return max(box[3] for box in boxes) if len(boxes) > 1 else None


def _furniture(page: Page) -> set[str]:
    """Headers and footers without their numbers; a page count alone is none."""
    lines = (_COUNT.sub("", _DIGITS.sub("#", block.text)) for block in page.blocks if block.furniture)
    return {line for line in lines if any(map(str.isalpha, line))}


def _stamps(readings: Sequence[PageReading]) -> AbstractSet[str]:
    """What runs through all pages is the packet's own and says nothing of where documents begin."""
    if len(readings) <= _TOO_FEW:
        return frozenset()
    return frozenset.intersection(*(frozenset(_furniture(one.page)) for one in readings))


def _type_size(page: Page) -> float:
    """The usual height of its words, in ten-thousandths of the page; 0 without any."""
    heights = sorted(word[5] - word[3] for word in page.words[::_SOME_WORDS])
    return heights[len(heights) // 2] if heights else 0.0


def _margin(page: Page) -> float:
    """Where most blocks begin from the left; 0 where nobody knows."""
    lefts = sorted(block.box[0] for block in page.blocks if not (block.furniture or block.hidden))
    return lefts[len(lefts) // 2] if len(set(lefts)) > 1 else 0.0
