"""Where the labels of a form stand: the words printed beside or above its entries.

A label is followed word by word over the sheet, to the right and on to the line below, letters only, so that it is found
where an engine has split or joined words or lost a letter, and where a narrow box breaks it into lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise

from rapidfuzz.distance import Levenshtein

from evalkit.extraction.sheet import Sheet, Word, key_of
from evalkit.extraction.template import Field, FieldTemplate

#: What engines read for the number of a box.
_ALIKE = str.maketrans("ilo|", "1100")
_BOX = re.compile(r"\d{1,2}[a-f]?|[a-f]")
#: The words of a label are not further apart than this, in heights of a word.
_GAP = 3.0
#: Nor its lines.
_LINE = 1.9
#: Print so many times as high as most of it is a title.
_TITLE = 1.5
#: In labels of so many letters a short word may be misread.
_LONG = 20
#: So many labels are followed from one word at most.
_BRANCHES = 400


@dataclass(frozen=True)
class Slot:
    """One box of the form: the fields that share its label."""

    fields: tuple[Field, ...]
    box: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Label:
    """A label that was found."""

    slot: Slot | None
    """None: printed words that belong to no box."""
    words: tuple[Word, ...]
    score: float
    """The share of its letters that were found, 0..1."""
    length: int
    """Letters of the label."""
    is_numbered: bool
    """Whether the number of its box stands before it."""
    text: str = ""
    """As the template has it."""
    x0: float = field(init=False)
    y0: float = field(init=False)
    x1: float = field(init=False)
    y1: float = field(init=False)

    def __post_init__(self) -> None:
        for name, pick in (("x0", min), ("y0", min), ("x1", max), ("y1", max)):
            object.__setattr__(self, name, pick(getattr(word, name) for word in self.words))

    @property
    def height(self) -> float:
        """Of a line of it."""
        return sorted(word.height for word in self.words)[len(self.words) // 2]


@cache
def slots(template: FieldTemplate) -> tuple[Slot, ...]:
    """The boxes of a form that have a label or a number."""
    shared: dict[tuple[str, tuple[str, ...]], list[Field]] = {}
    for one in template.fields:
        if one.labels or one.box:
            shared.setdefault((one.box, one.labels), []).append(one)
    return tuple(Slot(tuple(fields), box, labels) for (box, labels), fields in shared.items())


def find_labels(sheet: Sheet, template: FieldTemplate, *, is_loose: bool) -> tuple[Label, ...]:
    """The labels of the template on the sheet; no word belongs to two of them.

    ``is_loose`` takes worse spellings, and labels of which only the first words are there.
    """
    # Asked for the type, for the parts of the page and for each attempt: looked for once.
    key = (template.name, is_loose)
    found: tuple[Label, ...] | None = sheet.kept.get(key)
    if found is None:
        found = sheet.kept[key] = _labels(sheet, template, is_loose=is_loose)
    return found


def _labels(sheet: Sheet, template: FieldTemplate, *, is_loose: bool) -> tuple[Label, ...]:
    least = 0.72 if is_loose else 0.84
    found: list[Label] = []
    for slot in slots(template):
        for rank, text in enumerate(slot.labels):
            places = _find(sheet, text, slot, is_loose=is_loose)
            found += [_ranked(label, rank) for label in places if label.score >= least]
        if slot.box and (not slot.labels or "" in slot.labels):
            found += _bare_number(sheet, slot)
    found += [
        label
        for text in (*template.signs[:1], *template.printed)
        for label in _find(sheet, text, None, is_loose=is_loose)
        if label.score >= max(least, 0.8)
    ]
    settled = _settled(found)
    return (*settled, *_numbers_alone(sheet, template, settled))


def _numbers_alone(sheet: Sheet, template: FieldTemplate, found: Sequence[Label]) -> Iterator[Label]:
    """Boxes whose label was not found, or that have none, by their number: it stands in line with other numbers."""
    taken = words_of(found)
    there = {label.slot for label in found}
    edges = [label.x0 for label in found if label.is_numbered]
    for slot in slots(template):
        if slot in there or not slot.box[:1].isdigit():
            continue
        for word in sheet.words:
            if word.at not in taken and word.text.strip(".") == slot.box and _in_line(word, edges) >= 2:
                taken.add(word.at)
                yield Label(slot, (word,), 0.8, len(slot.box), is_numbered=True)
                break


def _in_line(word: Word, edges: Sequence[float]) -> int:
    return sum(abs(word.x0 - edge) < 0.6 * word.height for edge in edges)


def _ranked(label: Label, rank: int) -> Label:
    """Of labels of one length the template's first one goes before."""
    return Label(label.slot, label.words, label.score - 0.001 * rank, label.length, label.is_numbered, label.text)


def _settled(found: Sequence[Label]) -> list[Label]:
    """The best labels that share no word: numbered ones first, long ones before short ones."""
    taken: set[int] = set()
    kept: list[Label] = []

    def worth(label: Label) -> tuple[float, float]:
        return (label.score * label.length + (6 if label.is_numbered else 0), label.score)

    for label in sorted(found, key=worth, reverse=True):
        mine = {word.at for word in label.words}
        if not mine & taken:
            kept.append(label)
            taken |= mine
    return kept


def _find(sheet: Sheet, text: str, slot: Slot | None, *, is_loose: bool) -> Iterator[Label]:
    key = key_of(text)
    if not key:
        return
    box = key_of(slot.box) if slot else ""
    # A first letter that was misread is looked for on a second try only: there are many words.
    candidates = sheet.words if is_loose else sheet.beginning(key[0], *box[:1])
    for word in candidates:
        for first, skipped in _beginnings(word, key, box, is_loose=is_loose):
            best = _follow(sheet, word, first, key, is_loose=is_loose)
            if best is None:
                continue
            matched, words = best
            numbered = _numbered(sheet, words, box, skipped=skipped)
            if numbered is None or (box and not numbered[1] and _is_weak(sheet, word, key, is_loose=is_loose)):
                continue
            words, is_numbered = numbered
            yield Label(slot, _filled(sheet, words), matched / len(key), len(key), is_numbered, text)


def _numbered(
    sheet: Sheet, words: tuple[Word, ...], box: str, *, skipped: bool
) -> tuple[tuple[Word, ...], bool] | None:
    """The label with the number of its box, and whether it has it; None where it has another box's."""
    first = words[0]
    number = sheet.left_of(first) if box and not skipped else None
    if number is None or first.x0 - number.x1 >= _GAP * first.height:
        return words, skipped
    if number.key.translate(_ALIKE) == box.translate(_ALIKE):
        return (number, *words), True
    if sheet.is_recognised and len(number.text) <= 3:
        return (number, *words), False  # misread, but no entry
    return None if _BOX.fullmatch(number.key) and len(number.text) <= 3 else (words, False)


def _is_weak(sheet: Sheet, word: Word, key: str, *, is_loose: bool) -> bool:
    """Whether words without their box's number may be no label: short ones are ordinary, large ones are the title."""
    is_short = len(key) < 8 and word.key != key and not is_loose
    return is_short or word.height > _TITLE * sheet.line_height


def _filled(sheet: Sheet, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words with the dashes and the like between them."""
    between = [
        right
        for word, following in pairwise(words)
        for right in sheet.right_of(word)
        if not right.key and right.x0 < following.x0
    ]
    return (*words, *between)


def _beginnings(word: Word, key: str, box: str, *, is_loose: bool) -> Iterator[tuple[int, bool]]:
    """How many letters of the label the word holds at its start, and whether the box's number was joined to it."""
    if taken := _taken(word.key, key, 0, is_loose=is_loose):
        yield taken, False
    elif box and word.key.startswith(box) and len(word.key) > len(box):
        rest = word.key[len(box) :]
        if taken := _taken(rest, key, 0, is_loose=is_loose):
            yield taken, True


@lru_cache(maxsize=65536)
def _taken(word: str, key: str, at: int, *, is_loose: bool) -> int:
    """How many letters of the label from ``at`` the word stands for; 0: it is another word."""
    size = len(word)
    if not size:
        return 0
    if key.startswith(word, at):
        return size
    if size < (4 if is_loose else 5) or len(key) < 8:  # one letter more or less makes another word of a short one
        return 0
    allowed = max(1, size // (3 if is_loose else 5))
    best, length = allowed + 1, 0
    for long in (size, size - 1, size + 1):
        piece = key[at : at + long]
        if len(piece) < 3:
            continue
        distance = Levenshtein.distance(word, piece, score_cutoff=allowed)
        if distance < best:
            best, length = distance, len(piece)
    return length


def _follow(sheet: Sheet, word: Word, taken: int, key: str, *, is_loose: bool) -> tuple[float, tuple[Word, ...]] | None:
    """The longest way through the label from this word on: letters found, words."""
    best: tuple[float, tuple[Word, ...]] = (0.0, ())
    stack: list[tuple[int, float, tuple[Word, ...]]] = [(taken, float(taken), (word,))]
    for _ in range(_BRANCHES):
        if not stack:
            break
        at, matched, words = stack.pop()
        if matched > best[0]:
            best = matched, words
        if at >= len(key):
            break
        for following, gone in _following(sheet, words):
            if step := _taken(following.key, key, at, is_loose=is_loose):
                # Of two ways the one that spells the label as it is goes before.
                amiss = 0.02 * gone + (0.0 if key.startswith(following.key, at) else 0.1)
                stack.append((at + step, matched + step - amiss, (*words, following)))
                break
            if sheet.is_recognised and (step := _misread(following.key, key, at)):
                stack.append((at + step, matched + step - 1, (*words, following)))
                break
            # One word of the label that was lost, or misread beyond recognition.
            if is_loose and (ahead := _after_a_loss(following, key, at)):
                stack.append((ahead, matched + ahead - at - 4, (*words, following)))
                break
    least = 0.6 if is_loose else 0.75
    return best if best[0] >= least * len(key) else None


def _misread(word: str, key: str, at: int) -> int:
    """As ``_taken``, of a short word within a long label of which one letter was misread: "of" for "or"."""
    is_like = 2 <= len(word) <= 4 and len(key) >= _LONG and at + len(word) < len(key)
    return len(word) if is_like and Levenshtein.distance(word, key[at : at + len(word)]) == 1 else 0


def _after_a_loss(word: Word, key: str, at: int) -> int:
    if len(word.key) < 5:
        return 0
    place = key.find(word.key, at, at + len(word.key) + 12)
    return place + len(word.key) if place >= 0 else 0


def _following(sheet: Sheet, words: tuple[Word, ...]) -> Iterator[tuple[Word, int]]:
    """Where a label may go on after these words: to the right, then at the beginning of the line below."""
    last = words[-1]
    for gone, right in enumerate(sheet.right_of(last)):
        if right.x0 - last.x1 > _GAP * last.height:
            break
        yield right, gone
        if right.key and len(right.key) > 2:
            break
    x0, x1 = min(word.x0 for word in words), max(word.x1 for word in words)
    reach = last.height * _LINE
    below = sheet.within(x0 - 2 * last.height, last.y + 0.5 * last.height, x1 + last.height, last.y + reach)
    for number, word in enumerate(sorted(below, key=lambda word: word.x0)[:4]):
        yield word, number


def _bare_number(sheet: Sheet, slot: Slot) -> Iterator[Label]:
    """Boxes that print nothing but their number."""
    for word in sheet.words:
        if word.key == slot.box and len(slot.box) > 1:
            yield Label(slot, (word,), 0.9, len(slot.box), is_numbered=True)


@cache
def words_printed(template: FieldTemplate) -> frozenset[str]:
    """The words of three letters and more in the template's labels and other print."""
    texts = [*template.printed, *(text for slot in slots(template) for text in slot.labels)]
    return frozenset(key for text in texts for word in text.split() if len(key := key_of(word)) > 2)


def is_print(text: str, field: Field, template: FieldTemplate) -> bool:
    """Whether what was read is nothing but what the form prints itself: the number of the box, words of its labels.

    ``text``: as the page writes it. Two letters of a state may be words of a label too: they are none here.
    """
    keys = [key for key in map(key_of, text.split()) if key]
    if field.box and "".join(keys) == key_of(field.box):
        return field.format != "checkbox"
    return field.format == "text" and bool(keys) and words_printed(template).issuperset(keys)


def words_of(labels: Iterable[Label]) -> set[int]:
    """The numbers of the words that labels are made of."""
    return {word.at for label in labels for word in label.words}


def find_text(sheet: Sheet, text: str) -> tuple[Word, ...]:
    """The words of the first place where the text stands on the sheet; none where it does not."""
    best = max(_find(sheet, text, None, is_loose=False), key=lambda one: one.score, default=None)
    return best.words if best and best.score > 0.84 else ()
