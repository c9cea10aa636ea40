"""What is entered in the box of a label.

A box reaches from its label to the labels around it: its right border is where the next label of the same height begins,
its lower border where a label below begins. Borders themselves are not needed, so that scans are read as well as files.
What is entered is then picked by the field's format, from the row that is nearest to the label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rapidfuzz import fuzz

from evalkit.extraction.formats import is_currency, misread
from evalkit.extraction.labels import Label
from evalkit.extraction.sheet import Sheet, Word, in_rows, key_of
from evalkit.extraction.template import Field

#: An entry is not further below its label than this, in heights of the label's line.
_DEPTH = 12.0
#: Of name and address blocks, which have several lines.
_BLOCK_DEPTH = 18.0
#: The two values behind a label are not further from its beginning: the part of a form that they stand in is half a page.
_BLOCK_WIDTH = 0.45
#: Words of one entry are not further apart than this, in their own height.
_GAP = 2.2
#: A code and its amount stand in two columns of one box.
_CODE_GAP = 7.0
#: Below this sureness of the engine's, a word is doubtful; and so is a recognised amount of more digits without signs.
_FAINT, _POINTLESS = 0.3, 5
#: One or two digits that are less sure may be a speck.
_SPECK = 0.5
#: A row that has more of its letters in printed words is what is left of a label.
_MOSTLY = 0.55
#: Printed words of so many letters are a passage: no entry goes on into it.
_PASSAGE = 20
_LONGEST_RUN = 6
_DIGIT = re.compile(r"\d")
_DOLLAR = re.compile(r"^[$S§8]$")
_HOUSE = re.compile(r"(?:\d|p\.? ?o\.? ?box|rural|rr \d)", re.IGNORECASE)
_CITY = re.compile(r"[A-Z]{2}\.? +\d{5}(?:-\d{4})?\b")


@dataclass(frozen=True)
class Entry:
    """What stands in a box, for one field."""

    rows: tuple[tuple[Word, ...], ...]
    """The entry's words; several rows where it has several lines."""
    value: str
    """As it is read; of several lines joined by commas."""
    is_valid: bool
    """Whether it is in the field's format."""
    is_repaired: bool = False
    """Whether signs were read otherwise than the engine did."""
    is_doubtful: bool = False
    """Whether the box holds another one like it."""

    @property
    def words(self) -> tuple[Word, ...]:
        """All of them."""
        return tuple(word for row in self.rows for word in row)


@dataclass(frozen=True)
class Cell:
    """The room of a label's entry."""

    label: Label
    x0: float
    y0: float
    x1: float
    y1: float
    is_bounded: bool = True
    """Whether something tells where it ends on the right."""
    ruled: int = 0
    """Number of the ruled cell that the label stands in; 0: in none."""
    is_shared: bool = False
    """Whether that ruled cell has another label too."""
    foreign: frozenset[int] = frozenset()
    """Ruled cells of other labels."""
    printed: frozenset[str] = frozenset()
    """The words that the form prints."""

    def rows(self, sheet: Sheet, taken: set[int]) -> Iterator[list[list[Word]]]:
        """The words in it that are nobody else's, by rows: within the borders, then also beyond them."""
        words = [word for word in sheet.within(self.x0, self.y0, self.x1, self.y1) if word.at not in taken]
        if self.ruled:
            low = self.label.y0 - 0.4 * self.label.height
            yield in_rows(
                word
                for word in sheet.words
                if word.cell == self.ruled
                and word.at not in taken
                and word.y >= low
                and (not self.is_shared or (word.y <= self.y1 and word.x < self.x1))
            )
        low = self.label.y1 + 1.6 * _DEPTH * self.label.height
        yield in_rows(
            word
            for word in words
            if (not word.cell or word.cell not in self.foreign) and (not self.ruled or word.y < low)
        )


def cell_of(
    label: Label,
    labels: Sequence[Label],
    sheet: Sheet,
    *,
    is_block: bool,
    stretch: float = 1.0,
    printed: frozenset[str] = frozenset(),
) -> Cell:
    """The cell of a label among all the labels of its form; ``stretch`` reaches further down."""
    high = label.height
    edge = max((word.x1 for word in sheet.words), default=1.0) + high
    depth = (_BLOCK_DEPTH if is_block else _DEPTH) * stretch * max(high, 0.8 * sheet.line_height)
    others = [one for one in labels if one is not label]
    bounds = [one for one in others if one.slot is not None or one.length >= _PASSAGE]
    left = label.x0 - (0.5 if label.is_numbered else 1.0) * high
    beside = any(one.x0 > label.x1 and one.y0 < label.y1 + 1.5 * high and one.y1 > label.y0 for one in bounds)
    reach = _column_end(label, bounds, edge)
    lower = [
        one.y0
        for one in others
        if one.y0 > label.y1 - 0.3 * high
        and one.x0 < min(reach - high, max(label.x1, label.x0 + 6 * high))
        and one.x1 > left
        and (one.slot is not None or abs(one.x0 - label.x0) < 4 * high)
    ]
    ruled = label.words[-1].cell
    # Down to another label an entry may stand lower than one that nothing else tells about.
    bottom = min([*lower, label.y1 + depth * (1.6 if lower or is_block else 1.0)])
    right = min(
        (one.x0 for one in bounds if one.x0 > label.x0 + high and one.y1 > label.y0 and (one.y0 + one.y1) / 2 < bottom),
        default=edge,
    )
    foreign = frozenset(word.cell for one in others if one.slot for word in one.words if word.cell != ruled)
    is_bounded = beside or ruled > 0
    x1 = min(right, reach) - 0.2 * high
    shared = ruled > 0 and any(word.cell == ruled for one in others if one.slot for word in one.words)
    return Cell(
        label, left, label.y0 - 0.4 * high, x1, bottom + 0.2 * high, is_bounded, ruled, shared, foreign, printed
    )


def _column_end(label: Label, bounds: Sequence[Label], edge: float) -> float:
    """Where the next column begins: as in the row of labels that is nearest."""
    further = [(abs(one.y0 - label.y0), one.x0) for one in bounds if one.x0 > label.x1]
    if not further:
        return edge
    nearest = min(further)[0]
    return min(x0 for away, x0 in further if away < nearest + label.height)


def entry(field: Field, cell: Cell, sheet: Sheet, taken: set[int]) -> Entry | None:
    """What the cell holds for the field; None where it is empty.

    On a recognised page letters in amounts and numbers are read as the digits that they are taken for.
    """
    if field.stands:
        return _on_the_line(field, cell, sheet, taken)
    best: Entry | None = None
    for rows in cell.rows(sheet, taken):
        read = _text(field, cell, rows) if field.format == "text" else _formatted(field, cell, rows, sheet, taken)
        if read and read.is_valid:
            return read
        best = best or read
    return best


def _on_the_line(field: Field, cell: Cell, sheet: Sheet, taken: set[int]) -> Entry | None:
    """The mark before the label, or one of the two values behind it: of one alone nobody knows which it is."""
    label = cell.label
    if field.stands == "before":
        mark = sheet.left_of(label.words[0])
        is_near = mark is not None and label.x0 - mark.x1 < _GAP * label.height and mark.at not in taken
        value = _read(field, (mark,), is_repaired=False) if mark and is_near else None
        return Entry(((mark,),), value, is_valid=True) if mark and value else None
    behind = sheet.within(
        label.x1, label.y0 - 0.3 * label.height, label.x0 + _BLOCK_WIDTH, label.y1 + 0.3 * label.height
    )
    row = sorted((word for word in behind if word.at not in taken), key=lambda word: word.x0)
    found = list(_runs(field, row, is_repaired=False))
    at = ("first", "second").index(field.stands)
    if len(found) <= at:
        return None
    return Entry((found[at][0],), found[at][1], is_valid=True, is_doubtful=len(found) != 2)


# Entries in a format


def _formatted(field: Field, cell: Cell, rows: Sequence[Sequence[Word]], sheet: Sheet, taken: set[int]) -> Entry | None:
    label = cell.label
    # What stands on the label's own line is read last: it is seldom an entry, often the rest of a label.
    below = [row for row in rows if _middle(row) > label.y1 - 0.2 * label.height]
    level = [row for row in rows if _middle(row) <= label.y1 - 0.2 * label.height]
    repairs = (False, True) if sheet.is_recognised else (False,)
    for is_repaired in repairs:
        for row in (*below, *level):
            runs = _runs(field, row, is_repaired=is_repaired)
            found = [one for one in runs if not _is_in_a_sentence(one[0], sheet, taken)]
            if found:
                best = min(found, key=lambda one: _distance(one[0], label))
                rivals = [one for one in found if not {w.at for w in one[0]} & {w.at for w in best[0]}]
                is_doubtful = bool(rivals) or _is_faint(field, best[0], best[1])
                own = tuple(word for word in best[0] if word.text != "$")  # printed in the box
                return Entry((own,), best[1], is_valid=True, is_repaired=is_repaired, is_doubtful=is_doubtful)
            if field.format == "currency" and row in below and _is_print(row):
                return None  # words between label and entry: whose entry it is cannot be told
    return _attempt(field, below)


def _runs(field: Field, row: Sequence[Word], *, is_repaired: bool) -> Iterator[tuple[tuple[Word, ...], str]]:
    """The runs of words in a row that are a value of the field, the longest ones, no two of which overlap."""
    at = 0
    while at < len(row):
        for size in range(min(_LONGEST_RUN, len(row) - at), 0, -1):
            run = tuple(row[at : at + size])
            gap = _GAP if field.format != "pattern" else _CODE_GAP
            if any(after.x0 - before.x1 > gap * before.height for before, after in pairwise(run)):
                continue
            if value := _read(field, run, is_repaired=is_repaired):
                yield run, value
                at += size
                break
        else:
            at += 1


def _read(field: Field, run: Sequence[Word], *, is_repaired: bool) -> str | None:
    """The run as a value of the field; None where it is none."""
    text = " ".join(word.text for word in run if not _DOLLAR.match(word.text) or len(run) == 1).strip(" .,;:'")
    if field.format == "checkbox":
        return field.normal(text) if len(run) == 1 else None
    if field.format == "currency" and not _is_one_amount(run):
        return None
    if is_repaired:
        text = misread(text, field.format)
    elif field.format in ("ssn", "ein", "tin"):
        text = re.sub(r"\s*-\s*", "-", text)
        text = text if "-" in text else text.replace(" ", "")
    elif field.format == "currency":
        text = re.sub(r"(?<=[.,])\s+|\s+(?=[.,])", "", text)
    return text if field.normal(text) and (field.format != "currency" or _DIGIT.search(text)) else None


def _is_one_amount(run: Sequence[Word]) -> bool:
    """Whether the words are one amount: an engine divides amounts behind a comma, point, bracket or dollar sign only."""
    if len(run) > 1 and run[-1].text in ("$", "§"):
        return False
    return all(before.text[-1:] in ",.$(-§S" or after.text[:1] in ",.)" for before, after in pairwise(run))


def _is_in_a_sentence(run: Sequence[Word], sheet: Sheet, taken: set[int]) -> bool:
    """Whether words stand close on both sides: a number within a passage that is printed beside the form."""
    before, after = sheet.left_of(run[0]), sheet.right_of(run[-1])[:1]
    beside = [
        before is not None
        and before.at not in taken
        and _is_word(before)
        and run[0].x0 - before.x1 < 1.5 * before.height,
        bool(after)
        and after[0].at not in taken
        and _is_word(after[0])
        and after[0].x0 - run[-1].x1 < 1.5 * after[0].height,
    ]
    # 7075 2nd Street: a bare number beside a word is no amount.
    return any(beside) if all(word.text.isdigit() for word in run) else all(beside)


def _is_word(word: Word) -> bool:
    return len(word.key) > 1 and not word.key.isdigit()


def _is_faint(field: Field, run: Sequence[Word], value: str) -> bool:
    """Whether an engine hardly knew what it read, or may have lost the point of an amount."""
    if all(word.sureness == 1 for word in run):
        return False
    digits, sureness = sum(map(str.isdigit, value)), min(word.sureness for word in run)
    is_amount = field.format == "currency"
    is_pointless = is_amount and digits > _POINTLESS and not set(value) & set(".,")
    return sureness < _FAINT or is_pointless or (is_amount and digits <= 2 and sureness < _SPECK)


def _distance(run: Sequence[Word], label: Label) -> float:
    x0, x1 = run[0].x0, run[-1].x1
    return max(label.x0 - x1, x0 - label.x1, 0.0)


def _middle(row: Sequence[Word]) -> float:
    return sum(word.y for word in row) / len(row)


def _is_print(row: Sequence[Word]) -> bool:
    return sum(len(word.key) > 2 and word.key.isalpha() for word in row) >= 2


def _attempt(field: Field, rows: Sequence[Sequence[Word]]) -> Entry | None:
    """Something was entered, though not in the format: a dash for an amount, a number with a digit too few."""
    for row in rows:
        for run in _pieces(row):
            text = " ".join(word.text for word in run)
            digits = sum(map(str.isdigit, text))
            if any(map(str.isalpha, text)):
                continue
            if field.format == "currency" and "$" in text and (digits or re.search(r"\$\s*[-–—]", text)):
                return Entry((tuple(run),), text, is_valid=False)
            if field.format in ("ssn", "ein", "tin") and digits >= 4:
                return Entry((tuple(run),), text, is_valid=False)
    return None


def _pieces(row: Sequence[Word]) -> list[list[Word]]:
    """The row, divided at its wide gaps."""
    pieces: list[list[Word]] = []
    for word in row:
        if pieces and word.x0 - pieces[-1][-1].x1 < _GAP * word.height:
            pieces[-1].append(word)
        else:
            pieces.append([word])
    return pieces


# Entries of words


def _text(field: Field, cell: Cell, rows: Sequence[Sequence[Word]]) -> Entry | None:
    label = cell.label
    level: list[tuple[Word, ...]] = []
    below: list[tuple[Word, ...]] = []
    for row in rows:
        is_level = _middle(row) <= label.y1 - 0.2 * label.height
        after = label.x1 - 0.5 * label.height if is_level else float("-inf")
        behind = [word for word in row if word.x0 > after]
        words = tuple(word for word in _beneath(behind, cell) if _is_entry(word))
        if field.part and (len("".join(word.key for word in words)) == 1 or is_currency(_joined(words))):
            continue  # a speck, or another box's, whose label was not found
        # What is left of a label whose words were misread is no entry, and where another one begins, it ends.
        if words and below and len(_joined(words)) >= _PASSAGE and _is_rest(words, cell):
            break
        if words and not (not below and _is_rest(words, cell)):
            (level if is_level else below).append(words)
    rows_of = below or level
    if any(row[0].x0 < label.x1 for row in rows_of):
        rows_of = [row for row in rows_of if row[0].x0 < label.x1]  # the others begin beside the entry
    kept = _connected(rows_of, cell)
    if all(len(word.key) < 3 and word.sureness < 0.8 for row in kept for word in row):
        return None
    if not kept:
        return None
    lines = [" ".join(word.text for word in row) for row in kept]
    if field.part in ("name", "address"):
        first = _address_begins(lines)
        chosen = range(first) if field.part == "name" else range(first, len(lines))
        kept, lines = [kept[at] for at in chosen], [lines[at] for at in chosen]
    if not kept or (field.part == "name" and not any(len(word.key) > 1 for row in kept for word in row)):
        return None
    is_doubtful = min(word.sureness for row in kept for word in row) < _FAINT
    return Entry(tuple(kept), ", ".join(line.strip(" ,;") for line in lines), is_valid=True, is_doubtful=is_doubtful)


def _joined(words: Sequence[Word]) -> str:
    return "".join(word.text for word in words)


def _is_rest(words: Sequence[Word], cell: Cell) -> bool:
    """Whether a row is the end of its label, or most of its letters are words that the form prints."""
    if any(map(str.isdigit, _joined(words))):
        return False
    key = "".join(word.key for word in words)
    if cell.label.slot and any(key_of(text).endswith(key) for text in cell.label.slot.labels):
        return True
    letters = sum(len(word.key) for word in words)
    own = sum(len(word.key) for word in words if _is_printed(word.key, cell.printed))
    return own > _MOSTLY * letters


@lru_cache(maxsize=16384)
def _is_printed(key: str, printed: frozenset[str]) -> bool:
    return key in printed or (len(key) > 4 and any(fuzz.ratio(key, one) > 80 for one in printed))


def _beneath(row: Sequence[Word], cell: Cell) -> Sequence[Word]:
    """Of a row in a box that may end anywhere: the words up to the first wide gap, if they begin below the label."""
    for at, (before, after) in enumerate(pairwise(row), 1):
        # First and last name may stand in two columns; an amount behind a gap is another box's.
        if after.x0 - before.x1 > 3 * before.height and not (cell.is_bounded and after.key.isalpha()):
            row = row[:at]
            break
    return row if cell.is_bounded or (row and row[0].x0 < cell.label.x1) else ()


def _is_entry(word: Word) -> bool:
    return bool(word.key) and not (len(word.key) <= 2 and word.sureness < 0.5)


def _connected(rows: Sequence[tuple[Word, ...]], cell: Cell) -> list[tuple[Word, ...]]:
    """The rows of one entry: those after a wide gap in the middle of it belong to something else."""
    kept: list[tuple[Word, ...]] = []
    for row in rows:
        if kept:
            high = max(word.height for word in kept[-1])
            # Below a name there may be room, between the lines of an address there is none.
            if _middle(row) - _middle(kept[-1]) > (7.5 if len(kept) == 1 else 4.0) * high:
                break
        kept.append(row)
    near = kept and (cell.ruled or _middle(kept[0]) - cell.label.y1 < _BLOCK_DEPTH * cell.label.height)
    return kept if near else []


def _address_begins(lines: Sequence[str]) -> int:
    """The line with which the address begins; the name has one line at least."""
    for at, line in enumerate(lines[1:], 1):
        if _HOUSE.match(line) or _CITY.search(line):
            return at
    return 1 if len(lines) > 1 else len(lines)
