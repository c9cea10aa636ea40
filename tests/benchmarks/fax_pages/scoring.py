"""Comparison of what was read from a page with what its text layer says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

_EDGES = "()[]{},;:.!?\"'|_*"
_WITH_UNIT = re.compile(r"([<>=≥≤±~+-]*\d[\d.,/:-]*)([A-Za-z%µ°/²³*]+)")


def split_words(text: str) -> list[str]:
    """Words as they are compared: without punctuation at their edges."""
    return [word for raw in text.split() if (word := raw.strip(_EDGES))]


def normalise_number(word: str) -> str | None:
    """The number in a word: punctuation at its edges and a unit set against it go; None without a digit."""
    bare = word.strip(_EDGES)
    if not any(map(str.isdigit, bare)):
        return None
    with_unit = _WITH_UNIT.fullmatch(bare)
    return with_unit[1].rstrip(_EDGES) if with_unit else bare


def count_numbers(words: Iterable[str]) -> Counter[str]:
    """How often each number occurs."""
    return Counter(number for word in words if (number := normalise_number(word)))


@dataclass
class Tally:
    """Counts over pages; the shares follow from them."""

    pages: int = 0
    words: int = 0
    words_found: int = 0
    numbers: int = 0
    numbers_found: int = 0
    numbers_read: int = 0
    sure: int = 0
    sure_right: int = 0
    marked: int = 0
    """Words that the page calls doubtful."""
    newly_marked: int = 0
    """Those of them that the engine's confidence alone would have called sure."""
    unsure: int = 0
    """Words that are not stated as sure, for either reason."""
    unread: int = 0
    """Pages without any word."""
    seconds: float = 0.0
    raw_seconds: float = 0.0
    wall: float = field(default=0.0)

    def add(self, other: Tally) -> None:
        """Add another's counts."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


def score_page(truth: str, read: str, stated: Sequence[tuple[str, int, bool]], limit: int) -> Tally:
    """Score one page; ``stated`` holds each word with its confidence and whether the page calls it doubtful."""
    expected, found = Counter(split_words(truth)), Counter(split_words(read))
    numbers, numbers_read = count_numbers(truth.split()), count_numbers(read.split())
    sure = count_numbers(word for word, confidence, doubtful in stated if confidence >= limit and not doubtful)
    return Tally(
        pages=1,
        words=expected.total(),
        words_found=(expected & found).total(),
        numbers=numbers.total(),
        numbers_found=(numbers & numbers_read).total(),
        numbers_read=numbers_read.total(),
        sure=sure.total(),
        sure_right=(sure & numbers).total(),
        marked=sum(doubtful for _, _, doubtful in stated),
        newly_marked=sum(doubtful and confidence >= limit for _, confidence, doubtful in stated),
        unsure=sum(doubtful or confidence < limit for _, confidence, doubtful in stated),
        unread=not found,
    )
