"""Which forms stand on a page, and what is entered in them.

Everything here is computed from the words of the page: it is the embedded model's knowledge of forms. A page may hold
several forms; each is a part of the sheet. What a form is, its title and its labels say together: a letter that only
mentions a W-2 has the title and not the labels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from evalkit.documents.bundle import Page
from evalkit.extraction.cells import Entry, cell_of, entry
from evalkit.extraction.formats import Format, normalise
from evalkit.extraction.labels import Label, find_labels, find_text, slots, words_of, words_printed
from evalkit.extraction.sheet import Sheet, Word, key_of
from evalkit.extraction.template import FieldTemplate, Need, templates

GENERIC = "OTHER"
#: Fields that the form itself prints: where they alone are found, nobody has filled it in.
OWN_PRINT = frozenset(("tax_year", "document_title"))

#: A form of a type has this share of its title words and labels at least.
_ENOUGH = 0.3
#: And of its labels alone; a letter about a form has none.
_ENOUGH_LABELS = 0.2
#: Without its title it has this share of its labels.
_UNTITLED = 0.6
#: The year of an official form is printed so much larger than the rest.
_LARGE = 1.3
#: How sure an amount is that is known only by being left over.
_GUESSED = 0.6
#: Evidence from which there is no doubt about the type.
_CERTAIN = 0.6
_NUMBER = re.compile(r"(?:[A-Z]{1,2}-)?\d{1,4}(?:-[A-Z0-9]{1,5})?|W-?\d\w*")
_YEAR = re.compile(r"20\d\d")
_MONTH = re.compile(
    r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*\.?|rev\.?|revised|\(rev\.?", re.IGNORECASE
)
_OFFICIAL = re.compile(r"Department of the Treasury|Internal Revenue Service|\birs\.gov\b", re.IGNORECASE)
_INSTRUCTIONS = re.compile(r"\binstructions? (?:for|to)\b|\bnotice to (?:employee|recipient)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Form:
    """One form on a page."""

    sheet: Sheet
    template: str
    """Name of the likely template."""
    evidence: float
    """How much of that template's title and labels is there, 0..1."""
    alternatives: tuple[str, ...] = ()
    """Other templates of which something is there, the likeliest first."""

    @property
    def confidence(self) -> float:
        """How sure its type is, 0..1."""
        return min(1.0, self.evidence / _CERTAIN)


@dataclass(frozen=True)
class Reading:
    """What the embedded reader found in one field."""

    entry: Entry
    confidence: float


def forms_on(page: Page) -> list[Form]:
    """The forms of the page, from the top; none where it is no form that a template knows."""
    sheet = Sheet.of(page)
    likely = _likely(sheet)
    if not likely:
        return []
    parts = _parts(sheet, likely)
    found = (_typed(part, likely) for part in parts)
    return _without_copies([form for form in found if form is not None])


def continues(page: Page, form: FieldTemplate) -> bool:
    """Whether a page without a form belongs to the form before it: its back, its instructions."""
    text = page.text[:4000]
    return bool(_INSTRUCTIONS.search(text)) or not page.text.strip() or key_of(form.name) in key_of(text)


def read_form(sheet: Sheet, template: FieldTemplate, *, is_loose: bool, reach: float = 1.0) -> dict[str, Reading]:
    """What is entered in the fields of the template.

    ``is_loose`` is another way of reading, for a second try: worse spellings of labels, labels of which a part is lost. ``reach`` lets boxes end further down.
    """
    found_labels = find_labels(sheet, template, is_loose=is_loose)
    taken = words_of(found_labels)
    labels = [*_once(found_labels), *(label for label in found_labels if label.slot is None)]
    printed = words_printed(template)
    found: dict[str, Reading] = {}
    year = _year(sheet, template, taken, is_loose=is_loose) if template.field("tax_year") else None
    taken |= {word.at for word in year.entry.words} if year else set()
    for label in labels:
        if label.slot is None:
            continue
        is_block = any(field.part for field in label.slot.fields) or label.slot.fields[0].format == "text"
        cell = cell_of(label, labels, sheet, is_block=is_block, stretch=reach, printed=printed)
        for field in label.slot.fields:
            if read := entry(field, cell, sheet, taken):
                found[field.name] = Reading(read, _confidence(read, label))
    if year:
        found["tax_year"] = year
    found = _undisputed(found)
    if (is_loose or sheet.is_recognised) and (left := _left_over(sheet, template, found, taken)):
        found |= left
    return found


def _left_over(
    sheet: Sheet, template: FieldTemplate, found: Mapping[str, Reading], taken: set[int]
) -> dict[str, Reading]:
    """The one required amount whose label was not recognised, if exactly one amount belongs to no other box."""
    missing = [one for one in template.of(Need.REQUIRED) if one.format == "currency" and one.name not in found]
    used = taken | {word.at for one in found.values() for word in one.entry.words}
    if len(missing) != 1:
        return {}
    free = [
        one
        for row in sheet.rows
        if not _is_prose(row)
        for one in _amounts(missing[0].format, row, cents=False)
        if not used & {word.at for word in one.words}
    ]
    return {missing[0].name: Reading(free[0], _GUESSED)} if len(free) == 1 else {}


def stray_amounts(sheet: Sheet, template: FieldTemplate, used: Iterable[str]) -> int:
    """How many amounts stand on the form that are in none of the ``used`` texts: entries whose box was not recognised."""
    known = Counter(_digits(word) for text in used for word in text.split())
    written = Counter(
        _digits(one.words[0].text)
        for row in sheet.rows
        if not _is_prose(row)
        for one in _amounts("currency", row, cents=False)
    )
    printed = words_printed(template)
    return sum(times for digits, times in (written - known).items() if digits not in printed)


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def is_official(page: Page) -> bool:
    """Whether the page prints what the forms of the tax office print."""
    return bool(_OFFICIAL.search(page.text))


def read_anything(page: Page, template: FieldTemplate, *, is_official: bool) -> dict[str, Reading]:
    """The generic template's fields: title, year, issuer, recipient, the largest amount that stands for itself.

    Of an official form that no template knows, what is print and what was entered cannot be told apart: only amounts
    with cents count there.
    """
    sheet = Sheet.of(page)
    found: dict[str, Reading] = {}
    if not is_official:
        known = read_form(sheet, template, is_loose=False)
        found = {name: one for name, one in known.items() if name in ("issuer_name", "recipient_name")}
    if title := _title(sheet):
        found["document_title"] = Reading(_plain_entry(title), 0.6)
    year = _year(sheet, template, set(), is_loose=False)
    if year and (not is_official or year.entry.words[0].height > _LARGE * sheet.line_height):
        found["tax_year"] = year
    field = template.field("any_amounts")
    amounts = (
        [one for row in sheet.rows if not _is_prose(row) for one in _amounts(field.format, row, cents=is_official)]
        if field
        else []
    )
    if field and amounts:
        largest = max(amounts, key=lambda one: abs(Decimal(field.normal(one.value) or 0)))
        found["any_amounts"] = Reading(largest, 0.6)
    return found


def _title(sheet: Sheet) -> tuple[Word, ...]:
    """The largest print of the upper third."""
    rows = [tuple(word for word in row if word.key) for row in sheet.rows]
    rows = [
        row
        for row in rows
        if len(row) > 1 and sum(len(word.key) for word in row) > 7 and row[0].y < sheet.rows[0][0].y + 0.35
    ]
    return max(rows[:15], key=lambda row: round(sorted(w.height for w in row)[len(row) // 2], 3), default=())


# Which form it is


def _likely(sheet: Sheet) -> list[FieldTemplate]:
    """The templates of which a title word is on the page, the likeliest first."""
    whole = "".join(word.key for word in sheet.words)
    rough = {
        one: sum(key_of(sign) in whole for sign in one.signs) + (key_of(one.signs[0]) in whole)
        for one in templates("tax")
        if one.signs
    }
    likely = [one for one, count in rough.items() if count] or (list(rough) if sheet.is_recognised else [])
    least = 2 if sheet.is_recognised else 0.1 * max((len(slots(one)) for one in likely), default=0)
    likely = [one for one in likely if _hits(whole, one) >= least]
    return sorted(likely, key=lambda one: -rough[one])


def _hits(whole: str, template: FieldTemplate) -> int:
    """The boxes of which a label is in the page's letters: told quickly, and enough to leave out what is no form."""
    return sum(any(key in whole for key in map(key_of, slot.labels) if len(key) > 7) for slot in slots(template))


def _typed(sheet: Sheet, likely: Sequence[FieldTemplate]) -> Form | None:
    scored = sorted(((_evidence(sheet, one), one.name) for one in likely), reverse=True)
    scored = [one for one in scored if one[0] >= _ENOUGH]
    if not scored:
        return None
    others = tuple(name for _, name in scored[1:])
    return Form(sheet, scored[0][1], scored[0][0], others)


def _evidence(sheet: Sheet, template: FieldTemplate) -> float:
    """Title words and labels of the template that are on the sheet, as a share; 0 where there are hardly any labels."""
    # Labels of marks and shares are short and not on every form of the type.
    boxes = [slot for slot in slots(template) if slot.labels and slot.labels[0] and not slot.fields[0].stands]
    labels = find_labels(sheet, template, is_loose=False)
    there = {label.slot.fields[0].name for label in labels if label.slot and (label.is_numbered or label.length >= 8)}
    share = sum(slot.fields[0].name in there for slot in boxes) / len(boxes)
    if share < _ENOUGH_LABELS:
        return 0.0
    said = [bool(find_text(sheet, sign)) for sign in template.signs]
    if not said[0] and (share < _UNTITLED or _has_other_title(sheet, template)):
        return 0.0
    title = 0.6 * said[0] + 0.4 * sum(said[1:]) / max(len(said) - 1, 1)
    return 0.5 * title + 0.5 * min(1.0, share / 0.8)


def _has_other_title(sheet: Sheet, template: FieldTemplate) -> bool:
    """Whether the sheet is headed by the number of another form: "Form 1042-S"."""
    own = key_of(template.signs[0])
    for word in sheet.words:
        after = sheet.right_of(word)[:1] if word.key == "form" else ()
        if after and _NUMBER.fullmatch(after[0].text.strip(",.")) and key_of(after[0].text) != own:
            return True
    return False


# Several forms on one page


def _parts(sheet: Sheet, likely: Sequence[FieldTemplate]) -> list[Sheet]:
    """The sheet, divided where a second form begins: each form prints the label of its first field once."""
    labels: list[Label] = []
    for one in likely:
        labels += [label for label in find_labels(sheet, one, is_loose=False) if label.slot and label.score > 0.9]
    anchors = _anchors(labels, likely)
    if len(anchors) < 2:
        return [sheet]
    high = sheet.line_height
    bands: list[list[Label]] = []
    for anchor in anchors:
        if bands and anchor.y0 - bands[-1][0].y0 < 3 * high:
            bands[-1].append(anchor)
        else:
            bands.append([anchor])
    cuts = [_cut_between(sheet, labels, above[0], below[0]) for above, below in pairwise(bands)]
    edges = [float("-inf"), *cuts, float("inf")]
    parts = []
    for band, (top, bottom) in zip(bands, pairwise(edges), strict=True):
        words = [word for word in sheet.words if top <= word.y < bottom]
        columns = sorted(band, key=lambda label: label.x0)
        sides = [float("-inf"), *(_gutter(words, left, right) for left, right in pairwise(columns)), float("inf")]
        parts += [sheet.part(word for word in words if left <= word.x < right) for left, right in pairwise(sides)]
    return parts


def _anchors(labels: Sequence[Label], likely: Sequence[FieldTemplate]) -> list[Label]:
    """One label for each form, from the top: that of the first field of its template."""
    first = {one.fields[0].name for one in likely}
    kept: list[Label] = []
    for label in sorted(labels, key=lambda one: (one.y0, one.x0)):
        assert label.slot is not None  # noqa: S101 - _parts asks for labels of boxes only
        if label.slot.fields[0].name in first and label.length >= 8:
            mine = {word.at for word in label.words}
            if not any(mine & {word.at for word in other.words} for other in kept):
                kept.append(label)
    return kept


def _cut_between(sheet: Sheet, labels: Sequence[Label], above: Label, below: Label) -> float:
    """Where the lower form begins: before the first label that the upper one has already, or that only the lower has."""
    between = sorted((one for one in labels if above.y0 < one.y0 <= below.y0), key=lambda one: one.y0)
    seen = {one.text for one in labels if one.y0 <= above.y0}
    begins = below.y0
    for one in between:
        if one.text in seen:
            begins = one.y0
            break
        if one.y0 > above.y0 + sheet.line_height:
            seen.add(one.text)
    edges = sorted((word.y0, word.y1) for word in sheet.words if above.y1 < word.y < begins)
    reach = begins - 8 * sheet.line_height
    best, at, low = 0.0, begins - 0.3 * sheet.line_height, max(above.y1, reach)
    for top, bottom in [*(one for one in edges if one[1] > reach), (begins, begins)]:
        if top - low > best:
            best, at = top - low, (top + low) / 2
        low = max(low, bottom)
    return at


def _gutter(words: Sequence[Word], left: Label, right: Label) -> float:
    """The middle of the widest column without words between two forms side by side."""
    spans = sorted((word.x0, word.x1) for word in words if left.x1 < word.x1 and word.x0 < right.x1)
    best, at, low = 0.0, (left.x1 + right.x0) / 2, left.x1
    for x0, x1 in spans:
        if x0 - low > best and x0 <= right.x0:
            best, at = x0 - low, (x0 + low) / 2
        low = max(low, x1)
    return at


def _without_copies(found: list[Form]) -> list[Form]:
    """Copies of one form on one page, for the state, for the employee, count once."""
    kept: list[Form] = []
    seen: set[tuple[str, ...]] = set()
    for form in found:
        if len(found) > 1:
            said = read_form(form.sheet, _template(form.template), is_loose=False)
            entries = (form.template, *sorted(f"{name}={one.entry.value}" for name, one in said.items()))
            if len(entries) > 2 and entries in seen:
                continue
            seen.add(entries)
        kept.append(form)
    return kept


def _template(name: str) -> FieldTemplate:
    return next(one for one in templates("tax") if one.name == name)


# What is entered


def _once(labels: Sequence[Label]) -> Iterator[Label]:
    """The best label of each box."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for label in sorted(labels, key=lambda one: (not one.is_numbered, -one.score * one.length)):
        if label.slot and (label.slot.box, label.slot.labels) not in seen:
            seen.add((label.slot.box, label.slot.labels))
            yield label


def _confidence(read: Entry, label: Label) -> float:
    sure = min(word.sureness for word in read.words)
    factor = 0.97 if label.is_numbered or label.score > 0.95 else 0.9
    if read.is_repaired:
        factor *= 0.75
    if read.is_doubtful:
        factor *= 0.6
    return round(factor * (0.4 + 0.6 * sure), 3)


def _undisputed(found: dict[str, Reading]) -> dict[str, Reading]:
    """Each word is one field's: the more certain one's. Name and address may share a box, never a word."""
    kept: dict[str, Reading] = {}
    taken: set[int] = set()
    for name, one in sorted(found.items(), key=lambda item: -item[1].confidence):
        mine = {word.at for word in one.entry.words}
        if not mine & taken:
            kept[name] = one
            taken |= mine
    return {name: kept[name] for name in found if name in kept}


def _year(sheet: Sheet, template: FieldTemplate, taken: set[int], *, is_loose: bool) -> Reading | None:
    """The year of the form: large, beside its title, and no part of a date or of "Rev. January 2022"."""
    titles = [word for sign in template.signs[:2] for word in find_text(sheet, sign)]
    best: tuple[float, Entry, float] | None = None
    for row in sheet.rows:
        if _is_prose(row):
            continue
        for run in _year_runs(row, is_loose=is_loose):
            before = sheet.left_of(run[0])
            if before is not None and run[0].x0 - before.x1 < 2 * run[0].height and _dates(before):
                continue
            after = sheet.right_of(run[-1])[:1]
            if after and after[0].text.startswith(("-", "/")) and after[0].x0 - run[-1].x1 < run[-1].height:
                continue
            if any(word.at in taken for word in run):
                continue
            high = max(word.height for word in run) / sheet.line_height
            near = min((abs(run[0].y - one.y) + 0.3 * abs(run[0].x - one.x) for one in titles), default=0.5)
            said = 1.0 if before is not None and before.key in ("year", "calendar") else 0.0
            worth = min(high, 3.0) - 2 * near + said
            if best is None or worth > best[0]:
                text = "".join(word.text for word in run).strip("().,;:")
                sure = min(word.sureness for word in run)
                best = worth, Entry((tuple(run),), text, is_valid=True), sure
    return Reading(best[1], round(0.95 * (0.4 + 0.6 * best[2]), 3)) if best else None


def _dates(word: Word) -> bool:
    """Whether what follows the word is part of a date, or of "Rev. January 2022"."""
    return bool(_MONTH.fullmatch(word.text.strip("(,"))) or word.text.endswith("/")


def _year_runs(row: Sequence[Word], *, is_loose: bool) -> Iterator[tuple[Word, ...]]:
    """The words of a row that are a year: one, or two halves in different print, or its four digits apart."""
    for at, word in enumerate(row):
        for size in (1, 2, 4) if is_loose or word.height > 0.012 else (1, 2):
            run = tuple(row[at : at + size])
            if len(run) < size or any(b.x0 - a.x1 > 0.9 * a.height for a, b in pairwise(run)):
                continue
            if size > 1 and any(len(one.text) != 4 // size for one in run):
                continue
            if _YEAR.fullmatch("".join(one.text for one in run).strip("().,;:")):
                yield run


def _is_prose(row: Sequence[Word]) -> bool:
    """Whether the row is a line of a passage."""
    words = [word for word in row if word.key.isalpha()]
    return len(words) > 9 and sum(word.text.islower() for word in words) > 0.6 * len(words)


def _amounts(form: Format, row: Sequence[Word], *, cents: bool) -> Iterator[Entry]:
    """Amounts with cents, and where ``cents`` are not asked for also those with a dollar sign."""
    for before, word in pairwise((None, *row)):
        text = word.text.strip(";:") if word else ""
        if word is None or normalise(text, form) is None:
            continue
        dollars = "$" in text or (before is not None and before.text == "$")
        if re.search(r"\d\.\d\d\b", text) or (dollars and not cents):
            yield _plain_entry((word,), text)


def _plain_entry(words: tuple[Word, ...], text: str | None = None) -> Entry:
    return Entry((words,), text or " ".join(word.text for word in words), is_valid=True)
